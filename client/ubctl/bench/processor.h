// Which processors this process may use, and keeping a thread on one. Thread-safe.
#ifndef UB_UBCTL_BENCH_PROCESSOR_H_
#define UB_UBCTL_BENCH_PROCESSOR_H_

#include <sched.h>

#include <optional>
#include <vector>

namespace ub::ctl {

inline std::vector<int> AllowedProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

inline bool PinThisThread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

// This thread's, and its partner's in a ping-pong: another one, the one where the daemon's busiest thread runs where
// that is known and allowed. Nothing with a single processor.
struct ProcessorPair {
  int own;
  int partner;
};
inline std::optional<ProcessorPair> ChoosePair(const std::vector<int>& allowed, std::optional<int> daemon) {
  if (allowed.size() < 2) return std::nullopt;
  int partner = allowed[1];
  for (int processor : allowed) {
    if (processor == daemon) partner = processor;
  }
  return ProcessorPair{.own = partner == allowed[0] ? allowed[1] : allowed[0], .partner = partner};
}

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_PROCESSOR_H_
