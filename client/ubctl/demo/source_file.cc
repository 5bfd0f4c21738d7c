#include "client/ubctl/demo/source_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ub/error.h"

namespace ub::ctl {
namespace {

constexpr size_t kSecondReadBytes = size_t{1} << 20;

ssize_t ReadAt(int fd, std::byte* data, size_t size, uint64_t offset) {
  ssize_t got = 0;
  do {
    got = pread(fd, data, size, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  return got;
}

absl::Status WrongKind(const std::string& path, mode_t mode) {
  const char* kind = S_ISDIR(mode)    ? "a directory"
                     : S_ISFIFO(mode) ? "a FIFO"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  return absl::InvalidArgumentError(absl::StrCat(path, " is ", kind, "; the demo needs a regular file"));
}

}  // namespace

absl::StatusOr<SourceFile> SourceFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    if (errno == ENXIO) return WrongKind(path, S_IFSOCK);
    return ErrnoError(errno, absl::StrCat("open ", path));
  }
  struct stat opened = {};
  if (fstat(fd.get(), &opened) != 0) return ErrnoError(errno, absl::StrCat("fstat ", path));
  if (!S_ISREG(opened.st_mode)) return WrongKind(path, opened.st_mode);
  return SourceFile(path, std::move(fd), opened);
}

absl::Status SourceFile::CheckRead(uint64_t offset, uint64_t asked, uint64_t got) const {
  if (got == asked) return absl::OkStatus();
  if (got > asked) return Grew();
  return absl::AbortedError(absl::StrCat(path_, " shrank while it was read: it had ", size(),
                                         " bytes when opened and ends at ", offset + got,
                                         " now; run again when nobody writes to it"));
}

absl::Status SourceFile::CheckEnd() const {
  std::byte more;
  ssize_t got = ReadAt(fd_.get(), &more, 1, size());
  if (got < 0) return ErrnoError(errno, absl::StrCat("read ", path_, " at ", size()));
  return got == 0 ? absl::OkStatus() : Grew();
}

absl::Status SourceFile::Grew() const {
  return absl::AbortedError(absl::StrCat(
      path_, " grew while it was read: there are bytes beyond the ", size(),
      " that it had when opened; run again when nobody writes to it (files of /proc and the like have no size)"));
}

absl::StatusOr<HashValue> SourceFile::HashAgain() const {
  Hash hash;
  std::vector<std::byte> buffer(kSecondReadBytes);
  for (uint64_t at = 0; at < size();) {
    size_t want = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size() - at));
    ssize_t got = ReadAt(fd_.get(), buffer.data(), want, at);
    if (got < 0) return ErrnoError(errno, absl::StrCat("read ", path_, " at ", at));
    if (got == 0) return absl::AbortedError(absl::StrCat(path_, " shrank to ", at, " bytes while it was hashed"));
    hash.Add(buffer.data(), static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  return hash.Value();
}

bool SourceFile::Changed() const {
  struct stat now = {};
  return fstat(fd_.get(), &now) != 0 || now.st_size != opened_.st_size ||
         now.st_mtim.tv_sec != opened_.st_mtim.tv_sec || now.st_mtim.tv_nsec != opened_.st_mtim.tv_nsec;
}

}  // namespace ub::ctl
