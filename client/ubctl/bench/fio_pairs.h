// Reads through a queue against fio, in interleaved pairs. Not thread-safe.
#ifndef UB_UBCTL_BENCH_FIO_PAIRS_H_
#define UB_UBCTL_BENCH_FIO_PAIRS_H_

#include <string>

#include "absl/time/time.h"
#include "client/ubctl/load/workbench.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {

struct FioPairsPlan {
  std::string name;  // of the figures: "sequential_read"
  LoadPlan load;
  uint64_t pairs = 5;
  absl::Duration time;  // of each of the two
  double least_throughput = 0;
  double most_cpu = 0;  // 0: no bound
};

// Adds NAME, fio_NAME, NAME_cpu, fio_NAME_cpu and their ratios, the medians of the pairs' own. What cannot be measured
// is null, with the reason.
void AddFioPairs(Workbench& bench, const FioPairsPlan& plan, BenchReport& report);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_FIO_PAIRS_H_
