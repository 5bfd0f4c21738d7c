// Sleeping on a word of memory, also one that two processes share. Time runs on the monotonic clock.
#ifndef UB_SRC_FUTEX_H_
#define UB_SRC_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>

#include "absl/time/time.h"

namespace ub {

// Returns when the word is not `seen` any more, when it is woken, after `limit`, or for no reason: look again.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t seen, absl::Duration limit) {
  timespec relative = absl::ToTimespec(std::clamp(limit, absl::ZeroDuration(), absl::Hours(1)));
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &relative, nullptr, 0);
}

inline void FutexWakeAll(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ub

#endif  // UB_SRC_FUTEX_H_
