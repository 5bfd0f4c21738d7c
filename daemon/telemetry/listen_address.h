// The address that metrics are served on: loopback only, since they need no login and tell pool and method names.
#ifndef UBD_TELEMETRY_LISTEN_ADDRESS_H_
#define UBD_TELEMETRY_LISTEN_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ubd {

struct ListenAddress {
  std::string text;  // as given: "127.0.0.1:9401" or "[::1]:9401"
  uint16_t port = 0;
  sockaddr_storage socket_address = {};
  socklen_t length = 0;
};

// INVALID_ARGUMENT for a name, a missing or impossible port, and every address that is not of the loopback interface.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

}  // namespace ubd

#endif  // UBD_TELEMETRY_LISTEN_ADDRESS_H_
