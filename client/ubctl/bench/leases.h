// lease_warm; and lease_cold, rpc_null and allocate_populate_pin_* in interleaved rounds, so that they can be compared.
#ifndef UB_UBCTL_BENCH_LEASES_H_
#define UB_UBCTL_BENCH_LEASES_H_

#include "client/ubctl/bench/setting.h"

namespace ub::ctl {

Figure LeaseWarm(const BenchSetting& setting);

struct ColdFigures {
  Figure lease_cold;
  Figure rpc_null;
  Figure allocate_4k;
  Figure allocate_2m;
  uint64_t rounds = 0;
};
// Fails only when the daemon cannot be worked with at all.
absl::StatusOr<ColdFigures> LeaseColdRounds(const BenchSetting& setting);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_LEASES_H_
