// What /proc tells of another process. Errors are errno's, or NOT_FOUND for a line that is missing.
#ifndef UB_UBCTL_BENCH_PROC_H_
#define UB_UBCTL_BENCH_PROC_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace ub::ctl {

// Resident memory but for shared memory and huge pages, which in the daemon are the pool.
absl::StatusOr<uint64_t> OwnMemory(pid_t pid);
// Of all threads together, so far.
absl::StatusOr<uint64_t> VoluntarySwitches(pid_t pid);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_PROC_H_
