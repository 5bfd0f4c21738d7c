#include "client/src/connect_socket.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/src/mono_time.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

std::string GroupName(gid_t gid) {
  std::array<char, 4096> buffer;
  group entry = {};
  group* found = nullptr;
  ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? absl::StrCat(found->gr_name) : absl::StrCat(gid);
}

absl::Status NoAccess(const std::string& path, const std::string& dir) {
  struct stat info = {};
  bool socket_seen = ::stat(path.c_str(), &info) == 0;
  const std::string& shown = socket_seen ? path : dir;
  if (!socket_seen && ::stat(dir.c_str(), &info) != 0) {
    return MakeError(absl::StatusCode::kPermissionDenied, Reason::kSocketAccess, absl::StrCat("no access to ", path),
                     {{"path", path}});
  }
  std::string mode = absl::StrFormat("%04o", info.st_mode & 07777);
  std::string owner = GroupName(info.st_gid);
  return MakeError(
      absl::StatusCode::kPermissionDenied, Reason::kSocketAccess,
      absl::StrCat("no access to ", shown, " (mode ", mode, ", group ", owner, "): run as a member of group ", owner,
                   ", or have the administrator set socket.group in ubd's config"),
      {{"path", shown}, {"mode", mode}, {"group", owner}});
}

absl::Status ConnectError(int error_number, const std::string& path, const std::string& dir) {
  switch (error_number) {
    case ENOENT:
    case ECONNREFUSED:
      return MakeError(absl::StatusCode::kUnavailable, Reason::kNotRunning,
                       absl::StrCat("no ubd is listening at ", path, ": start it, or name its runtime directory"),
                       {{"path", path}});
    case EAGAIN:
      return MakeError(
          absl::StatusCode::kUnavailable, Reason::kNotAnswering,
          absl::StrCat("ubd at ", path, " does not accept connections in time: it is stopped or overloaded"),
          {{"path", path}});
    case EACCES:
    case EPERM:
      return NoAccess(path, dir);
    default:
      return ErrnoError(error_number, absl::StrCat("connect to ", path));
  }
}

// A blocking connect with a send timeout, because the kernel then wakes it when a full backlog has room again. A
// non-blocking one would get EAGAIN at once, and there is nothing that poll could wait for.
int ConnectWithin(int fd, const sockaddr_un& address, Deadline deadline) {
  while (true) {
    // Zero would mean no limit.
    timeval left = absl::ToTimeval(std::max(deadline.left(), absl::Microseconds(1)));
    if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) != 0) return errno;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return 0;
    if (errno != EINTR) return errno;
    if (deadline.passed()) return EAGAIN;
  }
}

}  // namespace

absl::StatusOr<UniqueFd> ConnectSocket(const std::string& runtime_dir, std::string_view socket_name, int type,
                                       absl::Time deadline) {
  std::string path = absl::StrCat(runtime_dir, "/", std::string(socket_name));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                     absl::StrCat("the socket path ", path, " is longer than a Unix socket's can be (",
                                  sizeof(address.sun_path) - 1, " bytes): use a shorter runtime directory"),
                     {{"path", path}});
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket for the connection to ubd");
  int failed = ConnectWithin(fd.get(), address, Deadline::After(deadline - absl::Now()));
  if (failed != 0) return ConnectError(failed, path, runtime_dir);
  timeval no_limit = {};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &no_limit, sizeof(no_limit)) != 0 ||
      ::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
    return ErrnoError(errno, "setting up the connection to ubd");
  }
  return fd;
}

}  // namespace ub
