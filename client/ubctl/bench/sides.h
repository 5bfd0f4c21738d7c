// The three ways of reading one file, measured in interleaved rounds with a cold cache: direct, staged (as good as the
// daemon can), traditional (read and copy). Not thread-safe.
#ifndef UB_UBCTL_BENCH_SIDES_H_
#define UB_UBCTL_BENCH_SIDES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/ubctl/load/workbench.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {

struct SidesPlan {
  Bytes chunk = MiB(1);
  uint32_t depth = 16;
  Bytes bytes;                                        // per side and round
  uint64_t rounds = 5;                                // that count
  uint64_t warm_up = 1;                               // measured before them and dropped
  absl::Duration at_least = absl::ZeroDuration();     // go on with further rounds until so long
  absl::Duration at_most = absl::InfiniteDuration();  // of one measurement
  bool need_direct = true;  // false: where direct cannot be, its side says why and the others are measured
};

struct SidesResult {
  TransferSide direct;
  TransferSide staged;
  TransferSide traditional;
  uint64_t rounds = 0;
  std::string warm_cache;  // why it could not be made cold, or ""
};

// Unless need_direct is false, fails when the direct side was not direct in every transfer:
// FAILED_PRECONDITION/PATH_UNAVAILABLE with the attested reason; such a run is no result.
absl::StatusOr<SidesResult> MeasureSides(Workbench& bench, const SidesPlan& plan);

// FAILED_PRECONDITION/PATH_UNAVAILABLE unless everything was direct.
absl::Status CheckAllDirect(const PathTally& paths);

// Why direct-only failed, for people: the attested reason and what it means.
std::string ExplainReason(const std::string& reason);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_SIDES_H_
