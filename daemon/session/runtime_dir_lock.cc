#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/session/proc_stat.h"
#include "daemon/session/sockets.h"
#include "proto/wire/error.h"
#include "proto/wire/runtime_dir.h"

namespace ubd {
namespace {

// How long a loser waits for the winner's pid to appear in the file: the winner writes it right after it has the lock.
constexpr int kPidWaitMs = 1000;

class HeldLock : public RuntimeDirLock {
 public:
  explicit HeldLock(ub::UniqueFd file) : file_(std::move(file)) {}
  // The file stays for the next daemon; removing it would let two hold "the" lock, on different inodes. It only stops
  // naming this one.
  ~HeldLock() override { (void)!::ftruncate(file_.get(), 0); }

 private:
  ub::UniqueFd file_;
};

absl::Status Foreign(const std::string& path, const std::string& why) {
  return ub::MakeError(absl::StatusCode::kFailedPrecondition, ub::Reason::kForeignFile,
                       absl::StrCat(path, " ", why, "; ubd leaves it alone: remove it or choose another --runtime-dir"),
                       {{"path", path}});
}

absl::StatusOr<ub::UniqueFd> OpenDir(const std::string& dir) {
  const mode_t mode = ::geteuid() == 0 ? 0755 : 0700;
  const bool made = ::mkdir(dir.c_str(), mode) == 0;
  if (!made && errno != EEXIST) return ub::ErrnoError(errno, absl::StrCat("making the runtime directory ", dir));
  ub::UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ELOOP || errno == ENOTDIR) return Foreign(dir, "is not a directory");
    return ub::ErrnoError(errno, absl::StrCat("opening the runtime directory ", dir));
  }
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return ub::ErrnoError(errno, absl::StrCat("stat of ", dir));
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return ub::MakeError(absl::StatusCode::kPermissionDenied, ub::Reason::kForeignFile,
                         absl::StrCat("the runtime directory ", dir, " belongs to uid ", info.st_uid, ", not to uid ",
                                      ::geteuid(), "; remove it or choose another --runtime-dir"),
                         {{"path", dir}});
  }
  // The umask may have cut what mkdir was asked for.
  if (made && info.st_uid == ::geteuid() && ::fchmod(fd.get(), mode) != 0)
    return ub::ErrnoError(errno, absl::StrCat("chmod of ", dir));
  if (!made && (info.st_mode & 022) != 0) {
    return ub::MakeError(absl::StatusCode::kPermissionDenied, ub::Reason::kForeignFile,
                         absl::StrCat("others may write to the runtime directory ", dir,
                                      ", so they could replace its sockets; chmod go-w ", dir),
                         {{"path", dir}});
  }
  return fd;
}

std::optional<int32_t> ReadPid(int file) {
  std::array<char, 32> text;
  ssize_t size = ::pread(file, text.data(), text.size(), 0);
  int32_t pid = 0;
  if (size <= 0 || std::from_chars(text.data(), text.data() + size, pid).ec != std::errc() || pid <= 0)
    return std::nullopt;
  return pid;
}

// The pid of whoever holds the lock. It may just have taken it and not yet written, so wait for a write, not for ever.
std::optional<int32_t> OwnerPid(int file, const std::string& path) {
  ub::UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  bool watching = watch.valid() && ::inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY) >= 0;
  std::optional<int32_t> pid = ReadPid(file);
  while (watching && !(pid && ReadProcStat(*pid))) {
    pollfd entry = {watch.get(), POLLIN, 0};
    if (::poll(&entry, 1, kPidWaitMs) <= 0) break;
    std::array<char, 4096> events;
    (void)!::read(watch.get(), events.data(), events.size());
    pid = ReadPid(file);
  }
  return pid;
}

absl::Status AlreadyRunning(int file, const std::string& dir, const std::string& path) {
  std::optional<int32_t> pid = OwnerPid(file, path);
  std::string who = pid ? absl::StrCat("another ubd (pid ", *pid, ")") : std::string("another ubd");
  return ub::MakeError(absl::StatusCode::kFailedPrecondition, ub::Reason::kAlreadyRunning,
                       absl::StrCat(who, " runs in ", dir, "; stop it or choose another --runtime-dir"),
                       {{"pid", pid ? absl::StrCat(*pid) : std::string()}, {"path", dir}});
}

// Whether the open file is still the one of that name.
bool StillThere(int dir, const std::string& name, int file) {
  struct stat here = {}, open = {};
  return ::fstat(file, &open) == 0 && ::fstatat(dir, name.c_str(), &here, AT_SYMLINK_NOFOLLOW) == 0 &&
         here.st_ino == open.st_ino && here.st_dev == open.st_dev;
}

absl::StatusOr<ub::UniqueFd> OpenLockFile(int dir, const std::string& name, const std::string& path) {
  ub::UniqueFd file(::openat(dir, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
  if (!file.valid()) {
    if (errno == ELOOP || errno == EISDIR || errno == ENXIO) return Foreign(path, "is not a lock file");
    return ub::ErrnoError(errno, absl::StrCat("opening the lock file ", path));
  }
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Foreign(path, "is not a lock file");
  return file;
}

absl::Status NameSelf(int file, const std::string& path) {
  std::string pid = absl::StrCat(::getpid(), "\n");
  if (::fchmod(file, 0644) != 0 || ::ftruncate(file, 0) != 0)
    return ub::ErrnoError(errno, absl::StrCat("preparing ", path));
  if (::pwrite(file, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return ub::ErrnoError(errno, absl::StrCat("writing ", path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RuntimeDirLock>> RuntimeDirLock::Take(const std::string& dir) {
  absl::StatusOr<ub::UniqueFd> dir_fd = OpenDir(dir);
  if (!dir_fd.ok()) return dir_fd.status();
  const std::string name(ub::kLockFileName);
  const std::string path = absl::StrCat(dir, "/", name);
  for (;;) {
    absl::StatusOr<ub::UniqueFd> file = OpenLockFile(dir_fd->get(), name, path);
    if (!file.ok()) return file.status();
    if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return AlreadyRunning(file->get(), dir, path);
      return ub::ErrnoError(errno, absl::StrCat("locking ", path));
    }
    // Somebody may have removed the file by hand between open and lock: then this lock is on nothing.
    if (!StillThere(dir_fd->get(), name, file->get())) continue;
    absl::Status named = NameSelf(file->get(), path);
    if (!named.ok()) return named;
    return std::unique_ptr<RuntimeDirLock>(std::make_unique<HeldLock>(*std::move(file)));
  }
}

}  // namespace ubd
