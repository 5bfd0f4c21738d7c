// A queue: transfers between leases and files (and between leases) without a copy and, while both sides are awake,
// without a system call. Two ways to use it.
//
// Handles: the memory moves into the transfer and comes back when it is done, so that nobody touches it meanwhile.
//
//   auto queue = ub::Queue::Open(*client, {});
//   auto file = ub::File::Open(*client, "/data/shard-7", O_RDONLY);
//   ub::Transfer read = *(*queue)->Read(*file, 0, slots->Take());      // a Slot, or a whole Lease
//   ub::Completion done = read.Wait();                                  // done.status, done.path, done.bytes
//   Use(read.slot().data(), done.bytes);
//
// Batches: raw entries, for many transfers in flight and the least cost of each.
//
//   queue->Submit(ops);                         // span of ub::Op; one wake-up for all
//   queue->Poll(completions);                   // what is there now
//   queue->Wait(completions, 1, deadline);      // at least so many
//
// Memory in flight: a Lease or Slot that is released or destroyed with transfers in flight goes back only when they are
// done; libub keeps it until then. A Queue that is destroyed first is read on by a thread of libub's own until nothing
// is in flight; then it is closed.
//
// The end: should the daemon go away, or the queue break, then what was in flight ends as ABORTED/IN_DOUBT, once each,
// and Submit fails from then on. Memory of such transfers is not handed out again by libub: a slot stays unused, a
// released lease goes back to the daemon, which knows when it is free.
//
// Files that the daemon does no I/O on (File::served_locally): Submit itself reads or writes them, in the calling
// thread, which takes as long as it takes (a deadline does not shorten it). Their completions come from Poll and Wait
// like all others. Under direct-only they fail with PATH_UNAVAILABLE.
//
// A Queue and its Transfers are for one thread at a time: open one per thread. It must not outlive its Client. Errors
// of Submit itself: QUEUE_FULL (read completions first), BAD_ENTRY (an Op that names nothing, or something of another
// Client), SESSION_ENDED, QUEUE_BROKEN, FORKED.
#ifndef UB_QUEUE_H_
#define UB_QUEUE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ub/client.h"
#include "ub/file.h"
#include "ub/lease.h"
#include "ub/slot_pool.h"
#include "ub/transfer.h"

namespace ub {

struct QueueOptions {
  uint32_t depth = 128;  // entries; a power of two, 2 to 4096
  PathPolicy path = PathPolicy::kDefault;
  absl::Duration deadline = absl::Seconds(5);  // of opening it
};

// One entry of a batch. Made by the functions below; leases, slots and files must be valid when it is submitted. A part
// of a slot: set entry.length.
struct Op {
  wire::SubmitEntry entry = {};
  class LeaseImpl* lease = nullptr;
  class LeaseImpl* target_lease = nullptr;
  class SlotPoolImpl* pool = nullptr;  // of a slot
  uint32_t slot = 0;
  std::shared_ptr<FileImpl> file;
};
Op ReadOp(uint64_t tag, const File& file, Bytes file_offset, const Lease& to, Bytes offset, Bytes length,
          const TransferOptions& options = {});
Op ReadOp(uint64_t tag, const File& file, Bytes file_offset, const Slot& to, const TransferOptions& options = {});
Op WriteOp(uint64_t tag, const Lease& from, Bytes offset, Bytes length, const File& file, Bytes file_offset,
           const TransferOptions& options = {});
Op WriteOp(uint64_t tag, const Slot& from, const File& file, Bytes file_offset, const TransferOptions& options = {});
Op CopyOp(uint64_t tag, const Lease& from, Bytes offset, const Lease& to, Bytes to_offset, Bytes length,
          const TransferOptions& options = {});
// Makes WRITEs durable that were complete when this was submitted.
Op FsyncOp(uint64_t tag, const File& file);
// Completes at once: measures the queue.
Op NopOp(uint64_t tag);

class QueueImpl;
class TransferImpl;

// One transfer by handle, with the memory that is in flight. Move-only. Destroyed early: the transfer goes on, its
// memory goes back when it is done.
class Transfer {
 public:
  Transfer();
  Transfer(Transfer&&) noexcept;
  Transfer& operator=(Transfer&&) noexcept;
  ~Transfer();

  bool valid() const { return impl_ != nullptr; }
  // Polls once. After true, completion(), slot() and lease() may be used.
  bool Done();
  // Waits until it is done. Returns earlier, with TRANSFER_DEADLINE and `more`, once its own deadline or the one given
  // here is over; it stays in flight then: Wait again.
  Completion Wait(absl::Duration deadline = absl::InfiniteDuration());
  // The last one that came.
  const Completion& completion() const;
  // Asks the daemon to give it up; it still completes. NO_SUCH_TRANSFER when it is done already.
  absl::Status Cancel();
  // The memory, back from the device. Take it with std::move. Empty while it is in flight.
  Slot& slot();
  Lease& lease();

 private:
  friend class Queue;
  explicit Transfer(std::shared_ptr<TransferImpl> impl);
  std::shared_ptr<TransferImpl> impl_;
};

class Queue {
 public:
  static absl::StatusOr<std::unique_ptr<Queue>> Open(Client& client, const QueueOptions& options);
  // Closes it; transfers in flight go on, and their memory is kept until they are done.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // --- batches. All or none: QUEUE_FULL where the ring has no room for all of them. Tags are the caller's own: any
  // numbers.
  absl::Status Submit(absl::Span<const Op> ops);
  // How many entries Submit has room for now.
  uint32_t Room() const;
  // What has completed by now, at most out.size(). Never blocks.
  size_t Poll(absl::Span<Completion> out);
  // At least `at_least` of them (or as many as are in flight), or DEADLINE_EXCEEDED/WAIT_TIMEOUT with none lost (Poll
  // gives those that came). Spins, then sleeps.
  absl::StatusOr<size_t> Wait(absl::Span<Completion> out, size_t at_least, absl::Duration deadline);
  // Asks the daemon to give up the transfer with this tag; it still completes, as CANCELLED or as if nothing had been
  // asked. Takes a place in the ring. NO_SUCH_TRANSFER when it is done already.
  absl::Status Cancel(uint64_t tag);
  // Transfers whose last completion Poll or Wait has not returned, and Transfers that are not done.
  uint32_t in_flight() const;

  // --- handles. QUEUE_FULL hands the memory back by dropping it (a slot returns to its pool).
  absl::StatusOr<Transfer> Read(const File& file, Bytes file_offset, Slot to, const TransferOptions& options = {});
  absl::StatusOr<Transfer> Read(const File& file, Bytes file_offset, Lease to, const TransferOptions& options = {});
  absl::StatusOr<Transfer> Write(Slot from, const File& file, Bytes file_offset, const TransferOptions& options = {});
  absl::StatusOr<Transfer> Write(Lease from, const File& file, Bytes file_offset, const TransferOptions& options = {});

  // Counts since Open, for benchmarks and listings.
  struct Stats {
    uint64_t submitted = 0, completed = 0, doorbells = 0, sleeps = 0, polls = 0, empty_polls = 0;
  };
  Stats stats() const;
  uint32_t id() const;
  // What the daemon advises ub::Batcher to submit at, for files.
  Bytes batch_bytes() const;

 private:
  absl::StatusOr<Transfer> Start(const Op& op, Slot slot, Lease lease);
  explicit Queue(std::unique_ptr<QueueImpl> impl);
  std::unique_ptr<QueueImpl> impl_;
};

}  // namespace ub

#endif  // UB_QUEUE_H_
