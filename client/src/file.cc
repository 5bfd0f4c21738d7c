#include "ub/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/file_impl.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

constexpr int kFlags = O_ACCMODE | O_CREAT | O_TRUNC | O_EXCL | O_NOFOLLOW;

absl::Status Appends() {
  return MakeError(
      absl::StatusCode::kInvalidArgument, Reason::kBadFile,
      "the descriptor was opened with O_APPEND, so that libub could not write where it is asked to; open it "
      "without",
      {{"field", "flags"}});
}

}  // namespace

absl::StatusOr<File> File::Open(Client& client, const std::string& path, int flags, int mode, absl::Duration deadline) {
  if (auto host = client.Transfers(); !host.ok()) return host.status();
  // O_NONBLOCK: a FIFO would hold the caller until somebody opens its other end.
  UniqueFd fd(::open(path.c_str(), (flags & kFlags) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open of ", path));
  int now = ::fcntl(fd.get(), F_GETFL);
  if (now < 0 || ::fcntl(fd.get(), F_SETFL, now & ~O_NONBLOCK) != 0)
    return ErrnoError(errno, absl::StrCat("fcntl of ", path));
  return FromDescriptor(client, fd.get(), deadline);
}

absl::StatusOr<File> File::FromDescriptor(Client& client, int fd, absl::Duration deadline) {
  absl::StatusOr<TransferHost*> host = client.Transfers();
  if (!host.ok()) return host.status();
  // The caller may close its own at any time.
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return ErrnoError(errno, "fcntl(F_DUPFD_CLOEXEC) of the descriptor");
  int flags = ::fcntl(own.get(), F_GETFL);
  if (flags < 0) return ErrnoError(errno, "fcntl(F_GETFL) of the descriptor");
  absl::StatusOr<FileFacts> facts = (*host)->OpenFile(own.get(), Deadline::After(deadline));
  if (!facts.ok()) return facts.status();
  if (facts->handle == 0) {
    if ((flags & O_APPEND) != 0) return Appends();
    facts->readable = (flags & O_ACCMODE) != O_WRONLY;
    facts->writable = (flags & O_ACCMODE) != O_RDONLY;
    // The daemon may not have had the file at all.
    struct stat info = {};
    if (::fstat(own.get(), &info) == 0) facts->size = Bytes(static_cast<uint64_t>(info.st_size));
  }
  return File(std::make_shared<FileImpl>(*host, *std::move(facts), std::move(own)));
}

bool File::direct() const { return impl_ != nullptr && impl_->facts().direct; }
PathReason File::why_not() const { return impl_ == nullptr ? PathReason::kNone : impl_->facts().why_not; }
bool File::served_locally() const { return impl_ != nullptr && impl_->local(); }
Bytes File::offset_align() const { return impl_ == nullptr ? Bytes() : impl_->facts().offset_align; }
Bytes File::size() const { return impl_ == nullptr ? Bytes() : impl_->facts().size; }

const std::string& File::file_system() const {
  static const auto* const kNone = new std::string;
  return impl_ == nullptr ? *kNone : impl_->facts().file_system;
}

}  // namespace ub
