// slot_take_return, with one thread and with two.
#ifndef UB_UBCTL_BENCH_SLOTS_H_
#define UB_UBCTL_BENCH_SLOTS_H_

#include "client/ubctl/bench/setting.h"

namespace ub::ctl {

// Time of one take and return together, each thread for itself, all at once.
Figure SlotTakeReturn(const BenchSetting& setting, std::string_view name, int threads);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_SLOTS_H_
