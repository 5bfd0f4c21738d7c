// Reproducible randomness: what is drawn follows from a seed that a report can print. Pure but for RandomSeed.
#ifndef UB_UBCTL_SEED_H_
#define UB_UBCTL_SEED_H_

#include <sys/random.h>

#include <cstdint>

namespace ub::ctl {

// A bijection of 64 bits that leaves no trace of its argument's order (the finaliser of SplitMix64).
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// SplitMix64. Not thread-safe.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t value = Mix(state_);
    state_ += 0x9e3779b97f4a7c15;
    return value;
  }
  // Of [0, limit); limit > 0.
  uint64_t Below(uint64_t limit) { return Next() % limit; }

 private:
  uint64_t state_;
};

// From the kernel. At most 53 bits, so that a JSON reader that keeps numbers as doubles gives it back unchanged.
inline uint64_t RandomSeed() {
  uint64_t seed = 0;
  while (getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
  }
  return seed >> 11;
}

}  // namespace ub::ctl

#endif  // UB_UBCTL_SEED_H_
