// The clock for everything that is measured: wall-clock time may jump. Thread-safe.
#ifndef UB_UBCTL_MONOTONIC_H_
#define UB_UBCTL_MONOTONIC_H_

#include <cstdint>
#include <ctime>

namespace ub::ctl {

inline uint64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

inline double SecondsSince(uint64_t start_ns) { return static_cast<double>(NowNs() - start_ns) / 1e9; }

}  // namespace ub::ctl

#endif  // UB_UBCTL_MONOTONIC_H_
