// The daemon's two listening sockets: bound in the runtime directory, or passed by the service manager.
#ifndef UBD_LISTENERS_H_
#define UBD_LISTENERS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/session/sockets.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

struct Listeners {
  std::unique_ptr<ListeningSocket> rpc;
  std::unique_ptr<ListeningSocket> lifeline;
  std::string rpc_path;  // where a client finds `rpc`
};

// `passed` (by FileDescriptorName) may have one listening Unix socket of each type: SOCK_STREAM for RPCs,
// SOCK_SEQPACKET for lifelines; whatever their names. Anything else passed is an error that names it. What was not
// passed is bound in `dir`.
absl::StatusOr<Listeners> OpenListeners(const std::string& dir, const SocketOptions& options,
                                        std::map<std::string, ub::UniqueFd> passed);

}  // namespace ubd

#endif  // UBD_LISTENERS_H_
