// What stands behind a ub::Queue: the ring, what is pending on it, and completions that wait for their reader. Used by
// one thread at a time.
//
// A completion reaches its handle, or else the next Poll or Wait. Whoever reads the ring reads it for all: what is not
// his waits in `ready_`. When the queue is over (closed, broken, session ended), all that was pending ends as IN_DOUBT,
// once each.
#ifndef UB_SRC_QUEUE_IMPL_H_
#define UB_SRC_QUEUE_IMPL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "client/src/fork_guard.h"
#include "client/src/pending_table.h"
#include "client/src/queue_ring_client.h"
#include "client/src/transfer_host.h"
#include "client/src/transfer_impl.h"
#include "ub/queue.h"

namespace ub {

class QueueImpl {
 public:
  QueueImpl(TransferHost* host, QueueParts parts, wire::PathPolicy policy);
  ~QueueImpl();
  QueueImpl(const QueueImpl&) = delete;
  QueueImpl& operator=(const QueueImpl&) = delete;

  absl::Status Submit(absl::Span<const Op> ops, const std::shared_ptr<TransferImpl>& handle = nullptr);
  uint32_t Room();
  size_t Poll(absl::Span<Completion> out);
  absl::StatusOr<size_t> Wait(absl::Span<Completion> out, size_t at_least, Deadline deadline);
  absl::Status CancelTag(uint64_t tag);
  absl::Status CancelId(uint64_t id);
  uint32_t in_flight() const { return for_poll_ + for_handles_; }

  // --- for handles
  // Reads all that has completed.
  void Advance();
  // Until there may be more to read. False: the deadline came first.
  bool Await(Deadline deadline) { return ring_->Await(deadline, stats_.sleeps); }

  // --- after the Queue is gone
  // Handles are on their own from now on, and nobody reads completions any more.
  void Detach();
  // Reads until nothing is pending or the session has ended.
  void Drain();
  bool idle() const { return pending_.empty(); }

  const Queue::Stats& stats() const { return stats_; }
  uint32_t id() const { return shape_.id; }
  Bytes batch_bytes() const { return batch_bytes_; }
  const ForkGuard& guard() const { return guard_; }
  TransferHost* host() const { return host_; }

 private:
  static Completion FromEntry(const wire::CompletionEntry& entry, uint64_t tag);

  // queue_submit.cc
  absl::Status CheckOp(const Op& op) const;
  uint32_t Places() const;
  absl::Status CheckAll(absl::Span<const Op> ops, uint32_t& for_ring);
  void RunLocal(const Op& op, const std::shared_ptr<TransferImpl>& handle);

  absl::Status CheckAlive();
  // The next completion that Poll may return.
  std::optional<Completion> Next();
  // Matches one completion of the daemon to what is pending; none for handles and for nobody.
  std::optional<Completion> Match(const wire::CompletionEntry& entry);
  std::optional<Completion> Deliver(Pending& pending, Completion done, bool known);
  void EndAll();

  TransferHost* const host_;
  const QueueShape shape_;
  const std::unique_ptr<QueueRingClient> ring_;
  const Bytes batch_bytes_;
  const wire::PathPolicy policy_;
  PendingTable pending_;
  std::deque<Completion> ready_;
  uint32_t for_poll_ = 0;     // transfers whose last completion Poll has not returned
  uint32_t for_handles_ = 0;  // transfers of handles that are not done
  bool detached_ = false;
  Queue::Stats stats_;
  const ForkGuard guard_;
};

}  // namespace ub

#endif  // UB_SRC_QUEUE_IMPL_H_
