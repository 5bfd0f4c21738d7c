// Connecting to one of the daemon's Unix sockets, with the causes of failure told apart. Thread-safe: no state.
#ifndef UB_SRC_CONNECT_SOCKET_H_
#define UB_SRC_CONNECT_SOCKET_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/unique_fd.h"

namespace ub {

// Connects `type` (SOCK_STREAM, SOCK_SEQPACKET) to a socket in the runtime directory. UNAVAILABLE/NOT_RUNNING: nothing
// listens (ENOENT, ECONNREFUSED); UNAVAILABLE/NOT_ANSWERING: the listener's backlog stayed full until the deadline;
// PERMISSION_DENIED/SOCKET_ACCESS names path, mode and group. The descriptor is non-blocking and close-on-exec.
absl::StatusOr<UniqueFd> ConnectSocket(const std::string& runtime_dir, std::string_view socket_name, int type,
                                       absl::Time deadline);

}  // namespace ub

#endif  // UB_SRC_CONNECT_SOCKET_H_
