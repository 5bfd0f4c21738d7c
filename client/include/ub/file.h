// A file as a target of transfers. Opened here, with this process's own rights; the daemon gets the descriptor and no
// more rights than it carries. Where the daemon does no I/O on it (its file system is not on the daemon's allow-list:
// FUSE, NFS, overlayfs, tmpfs, ...), libub reads and writes it in this process, in the thread that submits, and every
// completion says so: staged, and why. (direct-only of the node, `ubctl path`, counts there as it was when the file was
// opened.)
#ifndef UB_FILE_H_
#define UB_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ub/client.h"
#include "ub/transfer.h"

namespace ub {

class FileImpl;

// Copyable: copies name the same open file, which is closed with the last of them and the last transfer on it. Must not
// be used after its Client is gone. Thread-safe.
class File {
 public:
  File() = default;  // names none
  // `flags` as for open(2): O_RDONLY, O_WRONLY or O_RDWR, and O_CREAT, O_TRUNC, O_EXCL with `mode`. O_DIRECT is ubd's
  // business and ignored. Errors: those of open(2); BAD_FILE (no regular file or block device, O_APPEND);
  // TOO_MANY_FILES; SESSION_ENDED, NOT_ANSWERING, FORKED.
  static absl::StatusOr<File> Open(Client& client, const std::string& path, int flags, int mode = 0644,
                                   absl::Duration deadline = absl::Seconds(5));
  // Of a descriptor that the caller has opened; it stays the caller's.
  static absl::StatusOr<File> FromDescriptor(Client& client, int fd, absl::Duration deadline = absl::Seconds(5));

  bool valid() const { return impl_ != nullptr; }
  // Transfers can go directly; else `why_not` says why they are staged.
  bool direct() const;
  PathReason why_not() const;
  // libub does the I/O in this process.
  bool served_locally() const;
  // Of direct transfers: offsets and lengths must be multiples (slots and leases are aligned enough).
  Bytes offset_align() const;
  const std::string& file_system() const;
  Bytes size() const;  // when it was opened

 private:
  friend class FileImpl;
  explicit File(std::shared_ptr<FileImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<FileImpl> impl_;
};

}  // namespace ub

#endif  // UB_FILE_H_
