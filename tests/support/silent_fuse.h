// A FUSE file system whose server never answers: there is one file, `file`, that can be looked up and opened; whatever
// else is asked (attributes, reads, writes, flush at close) waits for ever, beyond SIGKILL, until the mount ends. Needs
// root and /dev/fuse. Thread-safe.
#ifndef UBD_TESTS_SUPPORT_SILENT_FUSE_H_
#define UBD_TESTS_SUPPORT_SILENT_FUSE_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

class SilentFuse {
 public:
  // "" where it can be used, else why not.
  static std::string WhyNot();
  // Mounts over the folder `mount_point`.
  static absl::StatusOr<std::unique_ptr<SilentFuse>> Mount(const std::string& mount_point);
  // Ends the mount: everything that waits fails with ENOTCONN.
  ~SilentFuse();
  SilentFuse(const SilentFuse&) = delete;
  SilentFuse& operator=(const SilentFuse&) = delete;

  std::string file() const { return mount_point_ + "/file"; }

 private:
  SilentFuse() = default;
  void Serve() const;

  std::string mount_point_;
  ub::UniqueFd device_;
  ub::UniqueFd stop_;
  std::thread server_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_SUPPORT_SILENT_FUSE_H_
