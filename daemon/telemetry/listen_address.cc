#include "daemon/telemetry/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>
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

template <class Address>
void Store(const Address& from, ListenAddress* to) {
  static_assert(sizeof(from) <= sizeof(to->socket_address));
  std::memcpy(&to->socket_address, &from, sizeof(from));
  to->length = sizeof(from);
}

// False: not an address of this family, or not loopback.
bool Fill4(const std::string& host, ListenAddress* to) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(to->port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return false;
  if (ntohl(address.sin_addr.s_addr) >> 24 != 127) return false;
  Store(address, to);
  return true;
}

bool Fill6(const std::string& host, ListenAddress* to) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(to->port);
  if (inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1) return false;
  if (!IN6_IS_ADDR_LOOPBACK(&address.sin6_addr)) return false;
  Store(address, to);
  return true;
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Bad(text, "has no port");
  ListenAddress parsed;
  parsed.text = text;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data() + colon + 1, end, parsed.port);
  if (error != std::errc() || rest != end || parsed.port == 0) return Bad(text, "has no port from 1 to 65535");
  std::string host = text.substr(0, colon);
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  bool loopback = bracketed ? Fill6(host.substr(1, host.size() - 2), &parsed) : Fill4(host, &parsed);
  if (!loopback) return Bad(text, "is not on the loopback interface (127.0.0.0/8 or [::1])");
  return parsed;
}

}  // namespace ubd
