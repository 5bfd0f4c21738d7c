// A ubd of one's own on a temporary runtime directory: started, awaited until READY=1, ended and cleaned up. Not
// thread-safe.
#ifndef UB_UBCTL_BENCH_PRIVATE_DAEMON_H_
#define UB_UBCTL_BENCH_PRIVATE_DAEMON_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ub::ctl {

class PrivateDaemon {
 public:
  // `config` is the text of its configuration. Returns when it says READY=1 (over a NOTIFY_SOCKET of its own), has
  // died, or after `patience`.
  static absl::StatusOr<PrivateDaemon> Start(const std::string& ubd, const std::string& config,
                                             absl::Duration patience);
  PrivateDaemon(PrivateDaemon&& other) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  // SIGTERM, waits for its end, removes the directory.
  ~PrivateDaemon();

  std::string runtime_dir() const { return directory_ + "/run"; }
  // From the start of the process to READY=1.
  absl::Duration boot() const { return boot_; }

 private:
  PrivateDaemon() = default;
  std::string directory_;
  pid_t pid_ = -1;
  absl::Duration boot_;
};

// `given`, else the ubd beside this program or in the build tree it lies in, else "ubd" (PATH).
std::string FindUbd(const std::string& given);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_PRIVATE_DAEMON_H_
