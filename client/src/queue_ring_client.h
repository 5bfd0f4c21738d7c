// The client's end of a queue (proto/wire/queue_layout.h has layout and protocol), over memory that the daemon also
// writes: indices are read once and checked, and one that cannot be ends the queue. Not thread-safe, except for End.
#ifndef UB_SRC_QUEUE_RING_CLIENT_H_
#define UB_SRC_QUEUE_RING_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "client/src/mono_time.h"
#include "proto/wire/adaptive_spin.h"
#include "proto/wire/queue_layout.h"
#include "proto/wire/unique_fd.h"

namespace ub {

// What the daemon said of a queue.
struct QueueShape {
  uint32_t id = 0;
  wire::QueueLayout layout;
  uint64_t spin_ns = 0;  // how long to poll before sleeping
};

class QueueRingClient {
 public:
  // Maps the memory and closes it; keeps the eventfd. Refuses memory that can shrink, of the wrong size, or whose
  // header says something else than `shape`. Forked children do not inherit it.
  static absl::StatusOr<std::unique_ptr<QueueRingClient>> Map(UniqueFd memory, UniqueFd event, const QueueShape& shape);
  // Over memory that stays the caller's.
  QueueRingClient(void* memory, UniqueFd event, const QueueShape& shape);
  ~QueueRingClient();
  QueueRingClient(const QueueRingClient&) = delete;
  QueueRingClient& operator=(const QueueRingClient&) = delete;

  // --- submitting: Put some, Publish all of them at once.
  // At most `wanted` entries have room now; asks the daemon's index only where the last known one does not suffice.
  uint32_t Room(uint32_t wanted);
  // Entry number `index` from the tail.
  void Put(uint32_t index, const wire::SubmitEntry& entry);
  // True: the daemon slept and was woken.
  bool Publish(uint32_t count);

  // --- completing: Take some, then EndTake gives their places back. True: the daemon slept for want of them, and was
  // woken.
  bool Take(wire::CompletionEntry& entry);
  bool EndTake();

  // Spins, then sleeps, until there is something to Take or the queue is over. False: the deadline came first. Counts
  // sleeps in `sleeps`.
  bool Await(Deadline deadline, uint64_t& sleeps);

  // Nothing will be taken or completed any more, for one of these reasons. Whatever was completed before can be read.
  enum class Life { kOpen, kClosed, kBroken, kSessionEnded };
  Life life() const;
  // The daemon wrote what cannot be.
  void Break(const char* why) { broken_ = why; }
  // "" or what the daemon did.
  const char* broken() const { return broken_; }
  // Any thread: the session has ended. Wakes whoever waits.
  void End();

 private:
  bool Ready() const;
  void Sleep(Deadline deadline);
  bool RingIfAsleep();

  const wire::QueueLayout layout_;
  wire::QueueIndices* const indices_;
  wire::SubmitEntry* const submits_;
  const wire::CompletionEntry* const completions_;
  const UniqueFd event_;
  void* mapping_ = nullptr;  // ours to unmap
  uint32_t sq_tail_ = 0;     // truth
  uint32_t sq_head_ = 0;     // as last read
  uint32_t cq_head_ = 0;     // truth
  uint32_t cq_head_shown_ = 0;
  uint32_t cq_tail_ = 0;     // as last read
  uint32_t unanswered_ = 0;  // published, and the last completion not given back yet
  uint32_t answered_ = 0;    // of these, taken since
  const char* broken_ = "";
  const uint64_t spin_ns_;
  AdaptiveSpin spin_;
  std::atomic<bool> ended_{false};
};

}  // namespace ub

#endif  // UB_SRC_QUEUE_RING_CLIENT_H_
