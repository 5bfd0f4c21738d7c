// Figures as people read them. Pure. Exact figures are what --json is for.
#ifndef UB_UBCTL_HUMAN_H_
#define UB_UBCTL_HUMAN_H_

#include <cstdint>
#include <string>

namespace ub::ctl {

// "0 B", "4097 B", "64 MiB", "1.5 GiB": binary units, at most one decimal.
std::string HumanSize(uint64_t bytes);
// "850 ns", "12.5 us", "3.2 ms", "41 s", "5 m 12 s", "3 h 20 m", "9 d 4 h".
std::string HumanDuration(uint64_t nanoseconds);
// Local time of day with milliseconds: "14:03:21.734".
std::string HumanTime(int64_t unix_nanoseconds);

}  // namespace ub::ctl

#endif  // UB_UBCTL_HUMAN_H_
