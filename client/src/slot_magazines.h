// Which slots of a pool are free: lock-free, exact, and without any state that a thread would have to give back when it
// ends.
//
// The free slots lie in magazines of at most 32, each one atomic word on a cache line of its own. A thread takes from
// the magazine it took from last
// ("its" magazine; no other thread starts there) and moves on to another when it is empty. A slot always returns to the
// magazine it came from, whoever returns it, so any thread can reach every free slot and nothing is ever stranded with
// a thread.
//
//   word:  63 ......... 32 | 31 .............. 0
//          count of returns | one bit per slot, set: free
//
// Take is one compare-and-swap, Return one addition (the bit is known to be clear, so adding sets it and counts at
// once). The counts make "none free" exact: only if two passes see no free slot and no return in between were all slots
// taken at one moment.
#ifndef UB_SRC_SLOT_MAGAZINES_H_
#define UB_SRC_SLOT_MAGAZINES_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

namespace ub {

class SlotMagazines {
 public:
  // All `slots` (at least 1) are free.
  explicit SlotMagazines(uint32_t slots);

  // A free slot; none when all are taken.
  std::optional<uint32_t> Take() {
    Home& home = HomeOfThread();
    uint64_t seen = 0;
    if (std::optional<uint32_t> slot = TakeFrom(home.magazine, seen)) return slot;
    return TakeElsewhere(home);
  }
  // Once for each taken slot.
  void Return(uint32_t slot) {
    uint64_t bit = uint64_t{1} << (slot & (width() - 1));
    magazines_[slot >> shift_].word.fetch_add(kOneReturn + bit, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kOneReturn = uint64_t{1} << 32;
  static constexpr uint64_t kFreeMask = kOneReturn - 1;

  struct alignas(64) Magazine {
    std::atomic<uint64_t> word{0};
  };
  // Where this thread took its last slot. Only a hint: a wrong one costs time, nothing else.
  struct Home {
    uint64_t owner = 0;  // id_ of the SlotMagazines; never used twice
    uint32_t magazine = 0;
  };

  Home& HomeOfThread() {
    constexpr uint64_t kPools = 4;
    static thread_local Home homes[kPools];
    Home& home = homes[id_ % kPools];
    if (home.owner != id_) home = {id_, NextHome()};
    return home;
  }
  // None: `seen` is the word as it was, without a free slot.
  std::optional<uint32_t> TakeFrom(uint32_t magazine, uint64_t& seen) {
    std::atomic<uint64_t>& word = magazines_[magazine].word;
    seen = word.load(std::memory_order_acquire);
    while ((seen & kFreeMask) != 0) {
      // Clears the lowest set bit, which is a slot's: the counts lie above.
      if (word.compare_exchange_weak(seen, seen & (seen - 1), std::memory_order_acquire)) {
        return (magazine << shift_) + static_cast<uint32_t>(std::countr_zero(seen));
      }
    }
    return std::nullopt;
  }
  std::optional<uint32_t> TakeElsewhere(Home& home);
  uint32_t NextHome();
  uint32_t width() const { return uint32_t{1} << shift_; }

  const uint64_t id_;
  const uint32_t shift_;  // of the slots per magazine, a power of two
  const uint32_t count_;  // magazines
  std::unique_ptr<Magazine[]> magazines_;
  std::atomic<uint32_t> threads_{0};
};

}  // namespace ub

#endif  // UB_SRC_SLOT_MAGAZINES_H_
