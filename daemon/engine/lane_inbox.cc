#include "daemon/engine/lane_inbox.h"

#include <unistd.h>

#include <utility>

namespace ubd {

void LaneInbox::PostCall(Call call) {
  {
    ub::MutexLock lock(&mu_);
    content_.calls.push_back(std::move(call));
  }
  Filled();
}

void LaneInbox::PostResults(absl::Span<const PieceResult> results) {
  {
    ub::MutexLock lock(&mu_);
    content_.results.insert(content_.results.end(), results.begin(), results.end());
  }
  Filled();
}

void LaneInbox::Nudge() {
  {
    ub::MutexLock lock(&mu_);
    content_.nudged = true;
  }
  Filled();
}

void LaneInbox::Filled() {
  // Both sequentially consistent, as in PrepareSleep: one of the two sees the other.
  filled_.store(true);
  if (!sleeping_.load()) return;
  const uint64_t one = 1;
  static_cast<void>(!write(event_.get(), &one, sizeof(one)));
}

bool LaneInbox::Take(Content& content) {
  if (!filled_.load(std::memory_order_relaxed)) return false;
  content.calls.clear();
  content.results.clear();
  content.nudged = false;
  filled_.store(false);
  ub::MutexLock lock(&mu_);
  std::swap(content, content_);
  return true;
}

bool LaneInbox::PrepareSleep() {
  sleeping_.store(true);
  if (!filled_.load()) return true;
  EndSleep();
  return false;
}

}  // namespace ubd
