// What ubctl's exit code says. Scripts and monitoring rely on these numbers. Pure.
#ifndef UB_UBCTL_EXIT_CODE_H_
#define UB_UBCTL_EXIT_CODE_H_

#include "absl/status/status.h"

namespace ub::ctl {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kNotRunning = 3,    // nobody listens, or the daemon is going or went away
  kNotAnswering = 4,  // somebody listens but did not answer in time
  kWarnings = 5,      // a check found warnings only
  kUnchecked = 6,     // a check could not be made
};

ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace ub::ctl

#endif  // UB_UBCTL_EXIT_CODE_H_
