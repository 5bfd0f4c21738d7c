// The monotonic clock as plain nanoseconds, for the lanes' own arithmetic.
#ifndef UBD_ENGINE_MONO_NS_H_
#define UBD_ENGINE_MONO_NS_H_

#include <time.h>

#include <cstdint>

namespace ubd {

inline constexpr uint64_t kNeverNs = UINT64_MAX;

inline uint64_t MonoNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace ubd

#endif  // UBD_ENGINE_MONO_NS_H_
