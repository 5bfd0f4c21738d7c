// The address that metrics are served on: IPv4 loopback only, since they need no login and tell pool and method names,
// and since the web server of the distribution is built without IPv6.
#ifndef UBD_TELEMETRY_LISTEN_ADDRESS_H_
#define UBD_TELEMETRY_LISTEN_ADDRESS_H_

#include <netinet/in.h>

#include <string>

#include "absl/status/statusor.h"

namespace ubd {

struct ListenAddress {
  std::string text;  // as given: "127.0.0.1:9401"
  sockaddr_in socket_address = {};
};

// INVALID_ARGUMENT for a name, a missing or impossible port, and every address that is not of 127.0.0.0/8.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

}  // namespace ubd

#endif  // UBD_TELEMETRY_LISTEN_ADDRESS_H_
