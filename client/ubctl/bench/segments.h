// The path in three pieces, each by itself beside what this machine can do: memory writes, device reads, handling of
// completions. Where a whole is slow, one of the pieces is. Not thread-safe.
#ifndef UB_UBCTL_BENCH_SEGMENTS_H_
#define UB_UBCTL_BENCH_SEGMENTS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "client/ubctl/load/workbench.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {

struct SegmentsPlan {
  uint64_t pairs = 5;
  absl::Duration time = absl::Milliseconds(500);  // of each device read
  uint64_t slices = 120;                          // of completion handling
};

Segment MemoryWrite(Workbench& bench, const SegmentsPlan& plan);
Segment DeviceRead(Workbench& bench, const SegmentsPlan& plan);
Segment CompletionHandling(Workbench& bench, const SegmentsPlan& plan);

// Sets ratio and verdict: "as expected" when value / expected is at least (or at most) `bound`, else `otherwise`. Pure.
void JudgeAtLeast(Segment& segment, double bound, const std::string& otherwise);
void JudgeAtMost(Segment& segment, double bound, const std::string& otherwise);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_SEGMENTS_H_
