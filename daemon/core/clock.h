// Time for decisions: the monotonic clock only. Wall-clock jumps change nothing; time in system suspend does not count
// (CLOCK_MONOTONIC).
#ifndef UBD_CORE_CLOCK_H_
#define UBD_CORE_CLOCK_H_

#include <compare>

#include "absl/time/time.h"

namespace ubd {

// A point on the monotonic clock. Only differences have a meaning.
class MonoTime {
 public:
  constexpr MonoTime() = default;
  constexpr explicit MonoTime(absl::Duration since_start) : since_start_(since_start) {}
  static constexpr MonoTime Never() { return MonoTime(absl::InfiniteDuration()); }
  constexpr absl::Duration since_start() const { return since_start_; }
  friend constexpr bool operator==(MonoTime a, MonoTime b) { return a.since_start_ == b.since_start_; }
  friend constexpr bool operator<(MonoTime a, MonoTime b) { return a.since_start_ < b.since_start_; }
  friend constexpr bool operator<=(MonoTime a, MonoTime b) { return a.since_start_ <= b.since_start_; }
  friend constexpr bool operator>(MonoTime a, MonoTime b) { return b < a; }
  friend MonoTime operator+(MonoTime a, absl::Duration d) { return MonoTime(a.since_start_ + d); }
  friend absl::Duration operator-(MonoTime a, MonoTime b) { return a.since_start_ - b.since_start_; }

 private:
  absl::Duration since_start_;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime Now() const = 0;
};

// CLOCK_MONOTONIC.
class SystemClock : public Clock {
 public:
  MonoTime Now() const override;
};

}  // namespace ubd

#endif  // UBD_CORE_CLOCK_H_
