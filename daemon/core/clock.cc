#include "daemon/core/clock.h"

#include <ctime>

namespace ubd {

MonoTime SystemClock::Now() const {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return MonoTime(absl::DurationFromTimespec(now));
}

}  // namespace ubd
