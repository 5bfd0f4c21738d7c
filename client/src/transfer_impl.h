// What stands behind a ub::Transfer: its memory while it is in flight, and its answer. Shared by the handle and by the
// queue; while the Queue lives both are used by its thread, afterwards the thread that drains it only calls Finish.
#ifndef UB_SRC_TRANSFER_IMPL_H_
#define UB_SRC_TRANSFER_IMPL_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "client/src/futex.h"
#include "ub/queue.h"

namespace ub {

class TransferImpl {
 public:
  TransferImpl(Slot slot_in, Lease lease_in) : slot(std::move(slot_in)), lease(std::move(lease_in)) {}

  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void AwaitDone(absl::Duration limit) const { FutexWait(done_, 0, limit); }
  // The last completion.
  void Finish(const Completion& last) {
    completion = last;
    done_.store(1, std::memory_order_release);
    FutexWakeAll(done_);
  }

  Slot slot;
  Lease lease;
  QueueImpl* queue = nullptr;  // null once the Queue is gone
  uint64_t id = 0;             // of its entry
  Completion completion;
  bool answered = false;  // `completion` is one with `more`, which Wait has not returned yet

 private:
  std::atomic<uint32_t> done_{0};  // also a futex
};

}  // namespace ub

#endif  // UB_SRC_TRANSFER_IMPL_H_
