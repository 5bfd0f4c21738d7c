// boot_per_gib: how long a private ubd takes for a pool of 1 GiB, against a bare parallel touch of as much memory.
#ifndef UB_UBCTL_BENCH_BOOT_H_
#define UB_UBCTL_BENCH_BOOT_H_

#include "client/ubctl/bench/setting.h"

namespace ub::ctl {

struct BootFigures {
  Figure boot;
  Figure touch;
};
// Starts `setting.ubd` (or the ubd beside this ubctl, else of PATH) on a private runtime directory and ends it again.
BootFigures BootPerGib(const BenchSetting& setting);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_BOOT_H_
