// Spin, then sleep: how long polling pays before the next sleep. Polling pays while the next event comes sooner than a
// sleep and a wake-up cost; where events are rarer it only burns the processor. So the spin adapts: an event that a
// spin would have caught keeps or restores the whole spin, one that came later halves it, down to none. Not
// thread-safe; one per poller.
#ifndef UB_WIRE_ADAPTIVE_SPIN_H_
#define UB_WIRE_ADAPTIVE_SPIN_H_

#include <cstdint>

namespace ub {

class AdaptiveSpin {
 public:
  // Of so many late events one is followed by a whole spin.
  static constexpr uint32_t kDaemonProbe = 16;
  static constexpr uint32_t kClientProbe = 15;

  AdaptiveSpin(uint64_t limit_ns, uint32_t probe) : limit_(limit_ns), probe_(probe), budget_(limit_ns) {}

  // How long to poll from the last event on before sleeping; 0: sleep at once.
  uint64_t budget_ns() const { return budget_; }
  // An event came, `gap_ns` after the one before it.
  void Event(uint64_t gap_ns) {
    if (gap_ns <= limit_) {
      budget_ = limit_;
      late_ = 1;
      return;
    }
    late_ = (late_ + 1) % probe_;
    if (late_ == 0) {
      budget_ = limit_;
    } else if (late_ == 1) {
      budget_ = 0;  // the probe found nothing
    } else {
      budget_ = budget_ > limit_ / kSteps ? budget_ / 2 : 0;
    }
  }

 private:
  static constexpr uint64_t kSteps = 16;
  uint64_t limit_;
  uint32_t probe_;
  uint64_t budget_;
  uint32_t late_ = 1;
};

// Tells the processor that this is a spin.
inline void SpinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace ub

#endif  // UB_WIRE_ADAPTIVE_SPIN_H_
