#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/session/sockets.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

using ub::ErrnoError;
using ub::MakeError;
using ub::Reason;
using ub::UniqueFd;

struct Inode {
  dev_t dev = 0;
  ino_t ino = 0;
  friend bool operator==(Inode, Inode) = default;
};

std::optional<Inode> InodeAt(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return Inode{info.st_dev, info.st_ino};
}

class BoundSocket : public ListeningSocket {
 public:
  BoundSocket(UniqueFd fd, std::string path, std::optional<Inode> inode)
      : fd_(std::move(fd)), path_(std::move(path)), inode_(inode) {}
  ~BoundSocket() override {
    if (inode_ && InodeAt(path_) == inode_) ::unlink(path_.c_str());
  }
  int fd() const override { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::string path_;
  std::optional<Inode> inode_;
};

absl::Status Foreign(const std::string& path, const std::string& what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kForeignFile,
                   absl::StrCat(path, " is ", what, "; ubd leaves it alone: remove it or choose another --runtime-dir"),
                   {{"path", path}});
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                     absl::StrCat("the socket path ", path, " has ", path.size(), " bytes; Unix sockets allow ",
                                  sizeof(address.sun_path) - 1, ": choose a shorter --runtime-dir"),
                     {{"limit", absl::StrCat(sizeof(address.sun_path) - 1)}});
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// None: leave the group as it is.
absl::StatusOr<std::optional<gid_t>> GroupId(const std::string& name) {
  if (name.empty()) return std::optional<gid_t>();
  std::vector<char> buffer(16384);
  group entry = {};
  group* found = nullptr;
  int error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  while (error == ERANGE && buffer.size() < (1u << 24)) {
    buffer.resize(buffer.size() * 2);
    error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  }
  if (found == nullptr) {
    return MakeError(
        absl::StatusCode::kNotFound, Reason::kBadConfig,
        absl::StrCat("socket group \"", name, "\" does not exist; make it (groupadd ", name, ") or change the config"),
        {{"group", name}});
  }
  return std::optional<gid_t>(entry.gr_gid);
}

// Clears the way: a socket that nobody serves is removed; anything else is an error and stays.
absl::Status RemoveStale(const std::string& path, const sockaddr_un& address, int type) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? absl::OkStatus() : ErrnoError(errno, absl::StrCat("stat of ", path));
  if (!S_ISSOCK(info.st_mode)) return Foreign(path, "not a socket");
  UniqueFd probe(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe.valid()) return ErrnoError(errno, "making a socket");
  int error = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
  if (error == 0 || error == EAGAIN) {
    return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kAlreadyRunning,
                     absl::StrCat("somebody serves ", path, " already; stop it or choose another --runtime-dir"),
                     {{"path", path}});
  }
  if (error == EPROTOTYPE) return Foreign(path, "another program's socket");
  if (error != ECONNREFUSED && error != ENOENT) return ErrnoError(error, absl::StrCat("probing who serves ", path));
  // Only what was probed: another starter may have put its own here meanwhile.
  if (InodeAt(path) != std::optional<Inode>(Inode{info.st_dev, info.st_ino})) return absl::OkStatus();
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return ErrnoError(errno, absl::StrCat("removing the dead socket ", path));
  return absl::OkStatus();
}

// Group first, then mode: in the other order the old group would have the new mode for a moment.
absl::Status SetAccess(const std::string& path, std::optional<gid_t> group, const SocketOptions& options) {
  UniqueFd at(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!at.valid()) return ErrnoError(errno, absl::StrCat("opening ", path));
  if (group && ::fchownat(at.get(), "", static_cast<uid_t>(-1), *group, AT_EMPTY_PATH) != 0) {
    return ErrnoError(errno, absl::StrCat("giving the socket ", path, " to group ", options.group));
  }
  if (::chmod(absl::StrCat("/proc/self/fd/", at.get()).c_str(), options.mode & 0777) != 0) {
    return ErrnoError(errno, absl::StrCat("chmod of ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> BindAt(const std::string& path, int type) {
  absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "making a socket");
  // bind gives the file the mode of the socket's own inode: none, whatever the umask of the process.
  if (::fchmod(fd.get(), 0) != 0) return ErrnoError(errno, "fchmod of a socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return ErrnoError(errno, absl::StrCat("binding ", path));
  }
  return fd;
}

// Binds a name beside `path` that nobody has, and says which. Tools show a socket by the name it was bound to, so that
// is the final one and a number; where it would be too long for an address, a short one, reached through its directory.
absl::StatusOr<UniqueFd> BindBeside(const std::string& path, int type, std::string& name) {
  const size_t slash = path.rfind('/');
  const std::string dir_path = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  UniqueFd dir(::open(dir_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return ErrnoError(errno, absl::StrCat("opening the directory of ", path));
  for (int i = 0; i < 64; ++i) {
    const int number = ::getpid() % 100000 + i;
    name = absl::StrCat(path, ".", number);
    std::string bind_to = name;
    if (!AddressOf(name).ok()) {
      const std::string shorter = absl::StrCat(".ubd.", number);
      name = absl::StrCat(dir_path, slash == std::string::npos ? "/" : "", shorter);
      bind_to = absl::StrCat("/proc/self/fd/", dir.get(), "/", shorter);
    }
    absl::StatusOr<UniqueFd> fd = BindAt(bind_to, type);
    if (fd.ok() || ub::DetailOf(fd.status(), "errno") != absl::StrCat(EADDRINUSE)) return fd;
  }
  return Foreign(name, "in the way of a new socket");
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> PutInPlace(const std::string& path, const sockaddr_un& address,
                                                            int type, UniqueFd fd, const std::string& name) {
  std::optional<Inode> inode = InodeAt(name);
  // From the moment it has its name it is served. NOREPLACE: never over another starter's.
  for (int i = 0; i < 8; ++i) {
    absl::Status clear = RemoveStale(path, address, type);
    if (!clear.ok()) return clear;
    if (::renameat2(AT_FDCWD, name.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
      return std::unique_ptr<ListeningSocket>(std::make_unique<BoundSocket>(std::move(fd), path, inode));
    }
    if (errno != EEXIST) return ErrnoError(errno, absl::StrCat("renaming ", name, " to ", path));
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kAlreadyRunning,
                   absl::StrCat("others keep binding ", path), {{"path", path}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::Bind(const std::string& path, int type,
                                                                       const SocketOptions& options) {
  absl::StatusOr<std::optional<gid_t>> group = GroupId(options.group);
  if (!group.ok()) return group.status();
  absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  // Early, so that a foreign file is named as such before anything is made beside it.
  absl::Status clear = RemoveStale(path, *address, type);
  if (!clear.ok()) return clear;
  std::string name;
  absl::StatusOr<UniqueFd> fd = BindBeside(path, type, name);
  if (!fd.ok()) return fd.status();
  absl::Status ready = SetAccess(name, *group, options);
  if (ready.ok() && ::listen(fd->get(), SOMAXCONN) != 0) ready = ErrnoError(errno, absl::StrCat("listening on ", path));
  if (!ready.ok()) {
    ::unlink(name.c_str());
    return ready;
  }
  absl::StatusOr<std::unique_ptr<ListeningSocket>> bound = PutInPlace(path, *address, type, *std::move(fd), name);
  if (!bound.ok()) ::unlink(name.c_str());
  return bound;
}

std::unique_ptr<ListeningSocket> ListeningSocket::Adopt(UniqueFd fd) {
  int status = ::fcntl(fd.get(), F_GETFL);
  if (status >= 0) (void)::fcntl(fd.get(), F_SETFL, status | O_NONBLOCK);
  (void)::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return std::make_unique<BoundSocket>(std::move(fd), std::string(), std::nullopt);
}

}  // namespace ubd
