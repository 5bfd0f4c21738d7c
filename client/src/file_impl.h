// What stands behind a ub::File. Closed when the last copy and the last transfer let go of it. Thread-safe.
#ifndef UB_SRC_FILE_IMPL_H_
#define UB_SRC_FILE_IMPL_H_

#include <memory>
#include <utility>

#include "client/src/fork_guard.h"
#include "client/src/transfer_host.h"
#include "proto/wire/unique_fd.h"
#include "ub/file.h"

namespace ub {

class FileImpl {
 public:
  // `fd` is kept only where libub does the I/O itself.
  FileImpl(TransferHost* host, FileFacts facts, UniqueFd fd)
      : host_(host), facts_(std::move(facts)), fd_(facts_.handle == 0 ? std::move(fd) : UniqueFd()) {}
  ~FileImpl() {
    if (facts_.handle != 0 && !guard_.forked()) host_->CloseFile(facts_.handle);
  }
  FileImpl(const FileImpl&) = delete;
  FileImpl& operator=(const FileImpl&) = delete;

  const FileFacts& facts() const { return facts_; }
  bool local() const { return facts_.handle == 0; }
  int fd() const { return fd_.get(); }
  const TransferHost* host() const { return host_; }

  static const std::shared_ptr<FileImpl>& Of(const File& file) { return file.impl_; }

 private:
  TransferHost* const host_;
  const FileFacts facts_;
  const UniqueFd fd_;
  const ForkGuard guard_;
};

}  // namespace ub

#endif  // UB_SRC_FILE_IMPL_H_
