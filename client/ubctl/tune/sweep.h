// Measures a curve: each setting in turn, in several rounds over the whole curve, so that a slow minute of the machine
// does not make one point look bad. Not thread-safe.
#ifndef UB_UBCTL_TUNE_SWEEP_H_
#define UB_UBCTL_TUNE_SWEEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ubctl/load/workbench.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/tune/knee.h"

namespace ub::ctl {

struct SweepPoint {
  uint64_t setting;  // as reported
  LoadPlan load;
};

struct SweepResult {
  std::vector<TunePoint> points;
  PathTally paths;
};

// One run of `time` for each point and round. With `staged`, each point once more by staged-only with a cold cache.
absl::StatusOr<SweepResult> Sweep(Workbench& bench, const std::vector<SweepPoint>& points, uint64_t rounds,
                                  absl::Duration time, bool staged);

std::vector<CurvePoint> CurveOf(const std::vector<TunePoint>& points);
// The smallest setting from which on direct is faster than staged at every point.
std::optional<uint64_t> DirectPaysFrom(const std::vector<TunePoint>& points);

}  // namespace ub::ctl

#endif  // UB_UBCTL_TUNE_SWEEP_H_
