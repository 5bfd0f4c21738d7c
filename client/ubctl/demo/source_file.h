// The file of the demo: opened once, read once through a queue (demo/reader.h) and once more here for its own hash.
// Tells when it changed in between. Not thread-safe.
#ifndef UB_UBCTL_DEMO_SOURCE_FILE_H_
#define UB_UBCTL_DEMO_SOURCE_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ubctl/demo/hash.h"
#include "proto/wire/unique_fd.h"

namespace ub::ctl {

class SourceFile {
 public:
  // INVALID_ARGUMENT for what is no regular file (a FIFO would block, a directory has no bytes), else errno's own code.
  static absl::StatusOr<SourceFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return static_cast<uint64_t>(opened_.st_size); }

  int fd() const { return fd_.get(); }

  // A read of `asked` bytes at `offset` brought `got`: ABORTED when the file has become shorter or longer than it was.
  absl::Status CheckRead(uint64_t offset, uint64_t asked, uint64_t got) const;
  // After the last byte: ABORTED when there is more than the file's size.
  absl::Status CheckEnd() const;
  // A second, independent read of the first size() bytes.
  absl::StatusOr<HashValue> HashAgain() const;
  // Whether somebody wrote to it since it was opened.
  bool Changed() const;

 private:
  SourceFile(std::string path, UniqueFd fd, const struct stat& opened)
      : path_(std::move(path)), fd_(std::move(fd)), opened_(opened) {}
  absl::Status Grew() const;

  std::string path_;
  UniqueFd fd_;
  struct stat opened_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_SOURCE_FILE_H_
