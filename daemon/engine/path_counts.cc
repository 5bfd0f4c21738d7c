#include "daemon/engine/path_counts.h"

#include <string>

#include "daemon/telemetry/log.h"
#include "proto/wire/queue_names.h"

namespace ubd {

using ub::wire::CompletionEntry;
using ub::wire::MemoryKind;
using ub::wire::Path;
using ub::wire::PathReason;

void PathCounts::Count(const CompletionEntry& completion) {
  if (completion.path == 0 && completion.path_reason == 0) return;
  const size_t index =
      ((size_t{completion.path} * kReasons + completion.path_reason) * kKinds + completion.from) * kKinds +
      completion.to;
  if (index >= cells_.size()) return;
  Cell& cell = cells_[index];
  cell.transfers.fetch_add(1, std::memory_order_relaxed);
  cell.bytes.fetch_add(completion.bytes, std::memory_order_relaxed);
  if (completion.error != 0) cell.failed.fetch_add(1, std::memory_order_relaxed);
  if (completion.path_reason != 0) LogOnce(completion);
}

void PathCounts::LogOnce(const CompletionEntry& completion) {
  const auto reason = static_cast<PathReason>(completion.path_reason);
  const uint32_t bit = uint32_t{1} << completion.path_reason;
  if (reason == PathReason::kForced || (logged_.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((logged_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  const bool expected = reason == PathReason::kBelowMinDirect || reason == PathReason::kUnaligned;
  const bool staged = static_cast<Path>(completion.path) == Path::kStaged;
  Log(expected ? LogLevel::kInfo : LogLevel::kWarn,
      staged ? "first transfer that was staged instead of direct for this reason"
             : "first direct-only transfer refused for this reason",
      {{"reason", ub::wire::PathReasonName(reason)},
       {"from", ub::wire::MemoryKindName(static_cast<MemoryKind>(completion.from))},
       {"to", ub::wire::MemoryKindName(static_cast<MemoryKind>(completion.to))}});
}

std::vector<PathCounter> PathCounts::Read() const {
  std::vector<PathCounter> counts;
  for (size_t i = 0; i < cells_.size(); ++i) {
    PathCounter counter = {.path = static_cast<Path>(i / kKinds / kKinds / kReasons),
                           .reason = static_cast<PathReason>(i / kKinds / kKinds % kReasons),
                           .from = static_cast<MemoryKind>(i / kKinds % kKinds),
                           .to = static_cast<MemoryKind>(i % kKinds)};
    counter.transfers = cells_[i].transfers.load(std::memory_order_relaxed);
    counter.bytes = cells_[i].bytes.load(std::memory_order_relaxed);
    counter.failed = cells_[i].failed.load(std::memory_order_relaxed);
    if (counter.transfers != 0) counts.push_back(counter);
  }
  return counts;
}

}  // namespace ubd
