// The same reads without ubd: what programs do today, and what a bare loop over the kernel's interface reaches. Errors
// are errno's. Not thread-safe.
#ifndef UB_UBCTL_LOAD_PLAIN_LOAD_H_
#define UB_UBCTL_LOAD_PLAIN_LOAD_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/ubctl/load/cpu_time.h"
#include "client/ubctl/load/queue_load.h"
#include "client/ubctl/load/result.h"

namespace ub::ctl {

// read() of each chunk into a heap buffer, then memcpy to where it is wanted. One at a time; the kernel reads ahead.
// Depth and policy of the plan do not apply.
absl::StatusOr<LoadResult> RunTraditional(int fd, absl::Span<std::byte> wanted, const LoadPlan& plan,
                                          const CpuMeter& meter);

// io_uring with O_DIRECT into registered memory of this process, plan.depth in flight: a loop of ubctl's own.
absl::StatusOr<LoadResult> RunPlainUring(int fd, const LoadPlan& plan, const CpuMeter& meter);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_PLAIN_LOAD_H_
