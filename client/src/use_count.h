// Who gives memory back: its holder, or the last transfer on it if the holder let go before. Thread-safe.
#ifndef UB_SRC_USE_COUNT_H_
#define UB_SRC_USE_COUNT_H_

#include <atomic>
#include <cstdint>

namespace ub {

class UseCount {
 public:
  // A transfer begins; only while the holder holds it.
  void Begin() { word_.fetch_add(kOneUse, std::memory_order_relaxed); }
  // A transfer is over. True: it was the last one and the holder has let go; the caller gives the memory back now.
  bool End() {
    if (word_.fetch_sub(kOneUse, std::memory_order_acq_rel) != kOneUse + kParked) return false;
    word_.store(0, std::memory_order_relaxed);
    return true;
  }
  // The holder lets go. True: transfers are in flight, and the last of them gives the memory back.
  bool Park() {
    if (word_.load(std::memory_order_acquire) == 0) return false;
    if (word_.fetch_add(kParked, std::memory_order_acq_rel) != 0) return true;
    word_.store(0, std::memory_order_relaxed);
    return false;
  }
  uint32_t uses() const { return word_.load(std::memory_order_relaxed) / kOneUse; }

 private:
  static constexpr uint32_t kParked = 1;
  static constexpr uint32_t kOneUse = 2;
  std::atomic<uint32_t> word_{0};
};

}  // namespace ub

#endif  // UB_SRC_USE_COUNT_H_
