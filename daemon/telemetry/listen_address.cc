#include "daemon/telemetry/listen_address.h"

#include <arpa/inet.h>

#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

absl::Status Bad(const std::string& text, const std::string& why) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadField,
                       absl::StrCat("listen address \"", text, "\" ", why, "; write for example \"127.0.0.1:9401\""),
                       {{"field", "listen"}});
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Bad(text, "has no port");
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end || port == 0) return Bad(text, "has no port from 1 to 65535");
  ListenAddress parsed;
  parsed.text = text;
  parsed.socket_address.sin_family = AF_INET;
  parsed.socket_address.sin_port = htons(port);
  std::string host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') return Bad(text, "is IPv6, which is not served");
  if (inet_pton(AF_INET, host.c_str(), &parsed.socket_address.sin_addr) != 1) {
    return Bad(text, "is not a number address and port");
  }
  if (ntohl(parsed.socket_address.sin_addr.s_addr) >> 24 != IN_LOOPBACKNET) {
    return Bad(text, "is not on the loopback interface (127.0.0.0/8)");
  }
  return parsed;
}

}  // namespace ubd
