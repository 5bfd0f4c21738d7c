// sessions_1000: a thousand sessions with a lease each. idle_wakeups_per_s: what the daemon does when nobody wants
// anything.
#ifndef UB_UBCTL_BENCH_SESSIONS_H_
#define UB_UBCTL_BENCH_SESSIONS_H_

#include "client/ubctl/bench/setting.h"

namespace ub::ctl {

// p50 and p99 are of Acquire; the value is the daemon's own memory then, without the pool.
Figure Sessions1000(const BenchSetting& setting);

// One child's share of the sessions: reports its Acquire times and holds until the parent hangs up.
ExitCode HoldSessionsForBench(const Context& context, const std::string& pool, uint64_t sessions, int socket);

// Voluntary context switches of all the daemon's threads, a second, over 20 s. Call it with no session of this process
// open.
Figure IdleWakeups(const BenchSetting& setting);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_SESSIONS_H_
