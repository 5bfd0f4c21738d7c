// What an A/B comparison amounts to, by the rule: under 10% stay with what you have, from 30% adopt direct, in between
// measure your own workload. Pure.
#ifndef UB_UBCTL_BENCH_VERDICT_H_
#define UB_UBCTL_BENCH_VERDICT_H_

#include <string>

#include "client/ubctl/report.pb.h"

namespace ub::ctl {

inline constexpr double kStayBelow = 0.10;
inline constexpr double kAdoptFrom = 0.30;

// "stay with what you have", "measure your workload", "adopt direct".
const char* VerdictFor(double gain);

// Fills in gains, verdict and advice from the sides. The gain is over the faster of staged and traditional: direct must
// beat the best that one had, not the worst.
void Judge(AbReport& report);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_VERDICT_H_
