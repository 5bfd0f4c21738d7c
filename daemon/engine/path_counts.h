// How transfers really went: counted by path, reason and memory kinds, and the first fallback of each reason logged.
// Thread-safe.
#ifndef UBD_ENGINE_PATH_COUNTS_H_
#define UBD_ENGINE_PATH_COUNTS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "daemon/engine/engine.h"
#include "proto/wire/queue_layout.h"

namespace ubd {

class PathCounts {
 public:
  // Once per transfer, with its last completion. What went no path for no reason (NOP, a bad entry) is not counted.
  void Count(const ub::wire::CompletionEntry& completion);
  std::vector<PathCounter> Read() const;

 private:
  static constexpr size_t kPaths = 3, kReasons = 9, kKinds = 4;
  struct Cell {
    std::atomic<uint64_t> transfers = 0, bytes = 0, failed = 0;
  };
  void LogOnce(const ub::wire::CompletionEntry& completion);

  std::array<Cell, kPaths * kReasons * kKinds * kKinds> cells_;
  std::atomic<uint32_t> logged_ = 0;  // bits of reasons
};

}  // namespace ubd

#endif  // UBD_ENGINE_PATH_COUNTS_H_
