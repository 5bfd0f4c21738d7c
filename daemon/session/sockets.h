// The runtime directory and the listening sockets in it. One daemon per directory: a lock file says who. Nothing that
// is not ours is ever removed, and no socket is reachable, even for a moment, by more people than the config says,
// whatever the umask.
#ifndef UBD_SESSION_SOCKETS_H_
#define UBD_SESSION_SOCKETS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// The lock on a runtime directory, from boot to exit. Makes the directory (0755 for root, else 0700) if it is not
// there; its parent must be. One that is there must belong to this user (or root) and be writable by nobody else, and
// must not be a link: PERMISSION_DENIED or FAILED_PRECONDITION/FOREIGN_FILE. Another owner of the lock:
// FAILED_PRECONDITION/ALREADY_RUNNING with its pid in the text and the detail `pid`.
class RuntimeDirLock {
 public:
  virtual ~RuntimeDirLock() = default;
  static absl::StatusOr<std::unique_ptr<RuntimeDirLock>> Take(const std::string& dir);
};

struct SocketOptions {
  uint32_t mode = 0660;
  std::string group;  // empty: leave as it is; unknown: an error
};

// A listening Unix socket at `path`, non-blocking, removed when destroyed if it is still the same inode. A dead
// daemon's socket is replaced; one that somebody serves is FAILED_PRECONDITION/ALREADY_RUNNING; a file, link or
// directory is FAILED_PRECONDITION/FOREIGN_FILE and stays. `type`: SOCK_STREAM or SOCK_SEQPACKET.
class ListeningSocket {
 public:
  virtual ~ListeningSocket() = default;
  virtual int fd() const = 0;
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Bind(const std::string& path, int type,
                                                               const SocketOptions& options);
  // A socket that systemd passed; made non-blocking and close-on-exec, never removed.
  static std::unique_ptr<ListeningSocket> Adopt(ub::UniqueFd fd);
};

}  // namespace ubd

#endif  // UBD_SESSION_SOCKETS_H_
