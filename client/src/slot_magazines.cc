#include "client/src/slot_magazines.h"

#include <algorithm>

namespace ub {
namespace {

constinit std::atomic<uint64_t> g_next_id{1};

// Small pools get small magazines, so that a few threads still find one each.
uint32_t ShiftFor(uint32_t slots) {
  uint32_t width = std::clamp(slots / 16, uint32_t{1}, uint32_t{32});
  return static_cast<uint32_t>(std::bit_width(width)) - 1;
}

}  // namespace

SlotMagazines::SlotMagazines(uint32_t slots)
    : id_(g_next_id.fetch_add(1)),
      shift_(ShiftFor(slots)),
      count_((slots >> shift_) + ((slots & (width() - 1)) != 0 ? 1 : 0)),
      magazines_(std::make_unique<Magazine[]>(count_)) {
  for (uint32_t i = 0; i < count_; ++i) {
    uint32_t slots_here = std::min(width(), slots - (i << shift_));
    magazines_[i].word.store((uint64_t{1} << slots_here) - 1, std::memory_order_relaxed);
  }
}

uint32_t SlotMagazines::NextHome() {
  // Golden-ratio steps: however many threads come, they start far from each other.
  uint32_t spread = threads_.fetch_add(1, std::memory_order_relaxed) * 2654435769u;
  return static_cast<uint32_t>((uint64_t{spread} * count_) >> 32);
}

std::optional<uint32_t> SlotMagazines::TakeElsewhere(Home& home) {
  std::optional<uint64_t> last_returns;
  while (true) {
    uint64_t returns = 0;
    for (uint32_t step = 1; step <= count_; ++step) {
      uint32_t magazine = step < count_ - home.magazine ? home.magazine + step : home.magazine + step - count_;
      uint64_t seen = 0;
      if (std::optional<uint32_t> slot = TakeFrom(magazine, seen)) {
        home.magazine = magazine;
        return slot;
      }
      returns += seen / kOneReturn;
    }
    // Counts only grow, so an equal sum means that no slot was returned between the two passes: at that moment all were
    // taken.
    if (last_returns == returns) return std::nullopt;
    last_returns = returns;
  }
}

}  // namespace ub
