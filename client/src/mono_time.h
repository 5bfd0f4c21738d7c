// Deadlines on the monotonic clock: setting the wall clock never shortens or lengthens a call. Plain values.
#ifndef UB_SRC_MONO_TIME_H_
#define UB_SRC_MONO_TIME_H_

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace ub {

class Deadline {
 public:
  // Negative durations are zero; infinite ones are capped at ten years, so that arithmetic never overflows.
  static Deadline After(absl::Duration wait) {
    return Deadline(Now() + std::clamp(wait, absl::ZeroDuration(), absl::Hours(24 * 3650)));
  }
  // Time left, never negative.
  absl::Duration left() const { return std::max(at_ - Now(), absl::ZeroDuration()); }
  bool passed() const { return left() == absl::ZeroDuration(); }
  // For poll(2): rounded up, so that it never wakes too early and spins; at most an hour.
  int poll_ms() const {
    return static_cast<int>(
        absl::ToInt64Milliseconds(std::min(absl::Ceil(left(), absl::Milliseconds(1)), absl::Hours(1))));
  }

 private:
  explicit Deadline(absl::Duration at) : at_(at) {}
  static absl::Duration Now() {
    timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::DurationFromTimespec(now);
  }
  absl::Duration at_;
};

}  // namespace ub

#endif  // UB_SRC_MONO_TIME_H_
