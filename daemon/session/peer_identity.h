// Who is at the other end of a socket, in the kernel's words. Thread-safe: no state.
//
// The pid of SO_PEERCRED is only a number and may have been given to somebody else by now; what names a process for
// good is a pidfd. Linux 6.5 hands one out for the peer (SO_PEERPIDFD). Older kernels: pidfd_open on the number, right
// after accept, guarded by the start time before and after. A peer in a PID namespace that this daemon does not see
// into has number 0 there and may send a pidfd of its own; a false one harms only itself. Nothing here ever signals a
// process, and number 0 is never used as one.
#ifndef UBD_SESSION_PEER_IDENTITY_H_
#define UBD_SESSION_PEER_IDENTITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/session/session.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// pid, uid and gid alone.
absl::StatusOr<PeerIdentity> PeerCredentials(int socket);

struct IdentifyOptions {
  bool use_peer_pidfd = true;  // off: as on a kernel before 6.5
};

// Credentials, pidfd and start time. UNAVAILABLE when the peer has died already; RESOURCE_EXHAUSTED/DAEMON_FD_LIMIT
// when this process has no descriptor left. `source` is "none" where only the client can help.
absl::StatusOr<PeerIdentity> IdentifyPeer(int socket, const IdentifyOptions& options = {});

// Takes the pidfd that a client sent, if none is known yet. INVALID_ARGUMENT when it is not one.
absl::Status AddClientPidfd(PeerIdentity& identity, ub::UniqueFd pidfd);

// The process's own name (comm); "" when unknown.
std::string ProcessName(const PeerIdentity& identity);

}  // namespace ubd

#endif  // UBD_SESSION_PEER_IDENTITY_H_
