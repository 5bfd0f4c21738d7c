// The runtime directory and the listening sockets in it. One daemon per directory: a lock file says who. Nothing that is not ours is ever
// removed, and no socket is reachable, even for a moment, by more people than the config says, whatever the umask.
#ifndef UBD_SESSION_SOCKETS_H_
#define UBD_SESSION_SOCKETS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// The lock on a runtime directory, from boot to exit. Another owner: FAILED_PRECONDITION/ALREADY_RUNNING with its pid. A directory in /tmp must be ours and 0700.
class RuntimeDirLock {
 public:
  virtual ~RuntimeDirLock() = default;
  static absl::StatusOr<std::unique_ptr<RuntimeDirLock>> Take(const std::string& dir);
};

struct SocketOptions {
  uint32_t mode = 0660;
  std::string group;  // empty: leave as it is; unknown: an error
};

// A listening Unix socket at `path`, removed when destroyed if it is still the same inode. A dead daemon's socket is replaced; a file, link or directory is
// FAILED_PRECONDITION/FOREIGN_FILE and stays. `type`: SOCK_STREAM or SOCK_SEQPACKET.
class ListeningSocket {
 public:
  virtual ~ListeningSocket() = default;
  virtual int fd() const = 0;
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Bind(const std::string& path, int type, const SocketOptions& options);
  // A socket that systemd passed; never removed.
  static std::unique_ptr<ListeningSocket> Adopt(ub::UniqueFd fd);
};

}  // namespace ubd

#endif  // UBD_SESSION_SOCKETS_H_
