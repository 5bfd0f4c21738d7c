// NOPs through a queue, in slices that alternate with the bare peers (bare_pair.h) on the same processors. Not
// thread-safe.
#ifndef UB_UBCTL_BENCH_NOP_H_
#define UB_UBCTL_BENCH_NOP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ubctl/bench/samples.h"
#include "client/ubctl/load/cpu_time.h"
#include "ub/queue.h"

namespace ub::ctl {

struct NopResult {
  Samples nop_latency;  // of one NOP, one sample a slice
  Samples ping_pong;
  std::vector<double> nop_rate;   // a second, one a slice
  std::vector<double> bare_rate;  // empty: not asked for
  Queue::Stats stats;             // of the NOPs
  CpuTime cpu;                    // while NOPs ran
  uint64_t nop_ns = 0;            // how long they ran
  std::string note;               // on which processors
};

// `slices` of latency, and as many of rate if asked for. FAILED_PRECONDITION where there is a single processor: two
// sides cannot poll at the same time there.
absl::StatusOr<NopResult> MeasureNops(Client& client, const CpuMeter& meter, pid_t daemon, uint64_t slices,
                                      bool with_rate);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_NOP_H_
