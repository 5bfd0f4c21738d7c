// What other threads have for a lane: calls to make in its thread, results, and nudges. Costs them no system call while
// the lane is awake. Thread-safe but where it says otherwise.
#ifndef UBD_ENGINE_LANE_INBOX_H_
#define UBD_ENGINE_LANE_INBOX_H_

#include <atomic>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "daemon/engine/piece.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class LaneInbox {
 public:
  using Call = std::function<void()>;
  struct Content {
    std::vector<Call> calls;
    std::vector<PieceResult> results;
    bool nudged = false;
  };

  explicit LaneInbox(ub::UniqueFd event) : event_(std::move(event)) {}
  void PostCall(Call call);
  void PostResults(absl::Span<const PieceResult> results);
  void Nudge();

  // --- the lane's thread only
  // False: nothing there.
  bool Take(Content& content);
  // Announces the sleep. False: something is there; do not sleep.
  bool PrepareSleep();
  void EndSleep() { sleeping_.store(false, std::memory_order_relaxed); }
  // For epoll, edge-triggered; never read.
  int event_fd() const { return event_.get(); }

 private:
  void Filled();

  const ub::UniqueFd event_;
  std::atomic<bool> filled_ = false;
  std::atomic<bool> sleeping_ = false;
  ub::Mutex mu_;
  Content content_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_ENGINE_LANE_INBOX_H_
