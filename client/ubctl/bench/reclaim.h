// reclaim_after_kill: from SIGKILL of a client that holds 64 MiB to another client's lease, in a pool that has nothing
// else free.
#ifndef UB_UBCTL_BENCH_RECLAIM_H_
#define UB_UBCTL_BENCH_RECLAIM_H_

#include "client/ubctl/bench/setting.h"

namespace ub::ctl {

// Takes the whole pool for its time: not for a busy node.
Figure ReclaimAfterKill(const BenchSetting& setting);

// The killed client's side, on the child's socket.
ExitCode HoldForBench(const Context& context, const std::string& pool, int socket);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_RECLAIM_H_
