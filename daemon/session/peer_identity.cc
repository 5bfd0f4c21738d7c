#include "daemon/session/peer_identity.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "daemon/session/proc_stat.h"
#include "proto/wire/error.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace ubd {
namespace {

absl::Status PeerDied() {
  return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded,
                       "the peer ended while it was being identified");
}

absl::Status NoDescriptors() {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kDaemonFdLimit,
                       "the daemon has no file descriptor left for another client; raise LimitNOFILE of ubd");
}

// Invalid fd: the kernel does not offer it.
absl::StatusOr<ub::UniqueFd> PeerPidfd(int socket) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return ub::UniqueFd(fd);
  if (errno == EMFILE || errno == ENFILE) return NoDescriptors();
  if (errno == ESRCH || errno == ENODATA) return PeerDied();
  return ub::UniqueFd();
}

bool HungUp(int socket) {
  pollfd entry = {socket, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// The same process from before pidfd_open to after it, and its socket still open: the number was not given to another
// one in between.
absl::StatusOr<ub::UniqueFd> OpenPidfd(int socket, int32_t pid, uint64_t start_before) {
  ub::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    if (errno == EMFILE || errno == ENFILE) return NoDescriptors();
    if (errno == ESRCH) return PeerDied();
    return ub::UniqueFd();  // no pidfds on this kernel
  }
  std::optional<ProcStat> after = ReadProcStat(pid);
  if (!after || after->start_time != start_before || HungUp(socket)) return PeerDied();
  return pidfd;
}

}  // namespace

absl::StatusOr<PeerIdentity> PeerCredentials(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ub::ErrnoError(errno, "SO_PEERCRED of an accepted socket");
  }
  PeerIdentity identity;
  identity.pid = credentials.pid > 0 ? credentials.pid : 0;
  identity.uid = Uid(credentials.uid);
  identity.gid = Gid(credentials.gid);
  identity.source = "none";
  return identity;
}

absl::StatusOr<PeerIdentity> IdentifyPeer(int socket, const IdentifyOptions& options) {
  absl::StatusOr<PeerIdentity> identity = PeerCredentials(socket);
  if (!identity.ok()) return identity;
  if (std::optional<ProcStat> stat = ReadProcStat(identity->pid)) identity->start_time = stat->start_time;
  if (options.use_peer_pidfd) {
    absl::StatusOr<ub::UniqueFd> pidfd = PeerPidfd(socket);
    if (!pidfd.ok()) return pidfd.status();
    if (pidfd->valid()) {
      identity->pidfd = *std::move(pidfd);
      identity->source = "peer-pidfd";
      return identity;
    }
  }
  if (identity->pid == 0) return identity;
  absl::StatusOr<ub::UniqueFd> pidfd = OpenPidfd(socket, identity->pid, identity->start_time);
  if (!pidfd.ok()) return pidfd.status();
  if (pidfd->valid()) {
    identity->pidfd = *std::move(pidfd);
    identity->source = "pidfd";
  }
  return identity;
}

absl::Status AddClientPidfd(PeerIdentity& identity, ub::UniqueFd pidfd) {
  if (!PidOfPidfd(pidfd.get())) {
    return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kMalformedFrame,
                         "Hello carries a descriptor that is not a pidfd");
  }
  if (identity.pidfd.valid()) return absl::OkStatus();
  identity.pidfd = std::move(pidfd);
  identity.source = "client-pidfd";
  return absl::OkStatus();
}

std::string ProcessName(const PeerIdentity& identity) {
  std::optional<ProcStat> stat = ReadProcStat(identity.pid);
  // Only if it still is the process that connected.
  return stat && stat->start_time == identity.start_time ? stat->name : std::string();
}

}  // namespace ubd
