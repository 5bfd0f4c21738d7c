// The monotonic clock, for the back-off timers of this folder.
#ifndef UBD_MEMORY_MONO_NOW_H_
#define UBD_MEMORY_MONO_NOW_H_

#include <time.h>

#include "daemon/core/clock.h"

namespace ubd {

inline MonoTime MonoNow() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return MonoTime(absl::DurationFromTimespec(now));
}

}  // namespace ubd

#endif  // UBD_MEMORY_MONO_NOW_H_
