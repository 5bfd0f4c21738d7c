// Receives the file descriptors of granted leases and of opened queues from the lifeline. Thread-safe: any number of
// threads may wait for their own at once.
//
// There is no thread of its own: of the waiting threads one reads the socket, for all of them; the others sleep until
// something came for them or the reader has left. Descriptors are handed on batch by batch, as the frames come, so a
// lease of thousands of blocks needs no more than a few hundred descriptors at a time. What nobody waits for (answers
// that were given up, repeated deliveries) is closed.
//
// The peer is checked, not trusted: batches come in order, counts and totals fit, and a lease is delivered to the one
// who asked for it.
#ifndef UB_SRC_GRANT_INBOX_H_
#define UB_SRC_GRANT_INBOX_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/src/mono_time.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"
#include "proto/wire/units.h"

namespace ub {

// What the answer of the RPC promised.
struct GrantWanted {
  LeaseId lease;
  Generation generation;
  uint64_t blocks = 0;
  Access access = Access::kReadWrite;
};

// Gets the fds of blocks first, first+1, ...; they are closed when it returns. A later call may start at 0 again: the
// daemon delivered anew.
using TakeFds = std::function<absl::Status(uint32_t first, absl::Span<const UniqueFd> fds)>;

// What came for one queue.
struct QueueFds {
  wire::QueueGrant frame = {};
  UniqueFd memory;
  UniqueFd event;
};

class GrantInbox {
 public:
  // `lifeline` stays the caller's and must outlive the inbox.
  explicit GrantInbox(int lifeline) : lifeline_(lifeline) {}

  // Must live from before the RPC until after Receive: while there is none, whatever arrives is closed.
  class Expectation {
   public:
    explicit Expectation(GrantInbox& inbox);
    ~Expectation();
    Expectation(const Expectation&) = delete;
    Expectation& operator=(const Expectation&) = delete;

   private:
    GrantInbox& inbox_;
  };

  // Waits for all blocks of one lease. Errors: RESOURCE_EXHAUSTED/CLIENT_FD_LIMIT, UNAVAILABLE/NOT_ANSWERING,
  // UNAVAILABLE/SESSION_ENDED, MALFORMED_FRAME, what GrantFailed says, and what `take` returns. After an error give the
  // lease back: whatever still comes of it is closed.
  absl::Status Receive(const GrantWanted& wanted, Deadline deadline, const TakeFds& take);

  // Waits for a queue's memory and eventfd. Errors as Receive. A grant that nobody comes for is closed.
  absl::StatusOr<QueueFds> ReceiveQueue(uint32_t queue, Deadline deadline);

  // Reads and closes what came for nobody. Does nothing while anybody expects something. Never blocks.
  void DrainIfIdle();

 private:
  struct Batch {
    uint32_t first;
    std::vector<UniqueFd> fds;
  };
  struct Delivery {
    bool started = false;  // the fields below are of a frame
    uint64_t number = 0;
    uint64_t generation = 0;
    uint32_t total = 0;
    uint32_t access = 0;
    uint32_t next = 0;  // first block of the next frame
    std::deque<Batch> batches;
    absl::Status failed;
    bool awaited = false;  // some thread is in Receive for it
  };

  struct QueueDelivery {
    absl::Status failed;
    QueueFds fds;
  };

  absl::Status Collect(const GrantWanted& wanted, Delivery& delivery, Deadline deadline, const TakeFds& take)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckOrWait(const GrantWanted& wanted, const Delivery& delivery, Deadline deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadOne(Deadline deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Handle(absl::StatusOr<wire::Packet> packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HandleGrant(const wire::Grant& grant, wire::Packet packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HandleQueue(const wire::QueueGrant& grant, wire::Packet packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void HandleFailure(const wire::GrantFailed& failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Enough is waiting for other threads: let them take it before more is read.
  bool OthersMustTakeFirst(const Delivery& mine) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropUnawaited(size_t keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsOver(uint64_t lease, uint64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int lifeline_;
  Mutex mu_;
  CondVar changed_;
  std::map<uint64_t, Delivery> deliveries_ ABSL_GUARDED_BY(mu_);   // by lease
  std::map<uint32_t, QueueDelivery> queues_ ABSL_GUARDED_BY(mu_);  // by queue; arrived, not fetched
  // Deliveries that ended lately, well or not: their late frames are closed.
  std::deque<std::pair<uint64_t, uint64_t>> over_ ABSL_GUARDED_BY(mu_);
  int expected_ ABSL_GUARDED_BY(mu_) = 0;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mu_);  // the lifeline is of no use any more
};

}  // namespace ub

#endif  // UB_SRC_GRANT_INBOX_H_
