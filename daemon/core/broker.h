// The Broker: who holds which block, who waits, who may. Pure state and one lock: no sockets, no memory, no threads of
// its own. Thread-safe.
//
// A lease is N blocks of one pool. Any N blocks serve any request: those that this uid used last or that are clean are
// granted at once; those with another uid's bytes go through Recycling first (unless the pool's isolation is NONE).
// Waiters are served strictly first come, first served per pool, so a large request cannot starve; what can never be
// met is refused at once. When the head of the queue lacks blocks, cached leases are recalled through their words,
// oldest first, without asking their clients.
//
// A request that does not wait is refused at once when memory is short, but not when enough of it is merely on its way
// (being tested or recycled, or idle in a client's cache): such a request waits up to kPatience.
//
// Quotas count leased (cached too), waited-for and retired bytes: per uid over all its sessions, and per session (which
// has no retired ones). Over a quota, one's own idle leases are recalled first; then the request is refused at once,
// for waiting would hold up other uids.
//
// Every end of a lease is final for its id: a second Release is NOT_FOUND, and so is anything that belongs to another
// uid. A lease that is pinned (fds being sent, transfers in flight) keeps its blocks Draining, and charged to its
// owner, until the last pin is gone.
//
// Lock order: callers hold nothing when they call in; the Broker calls BlockMemory, LeaseWords and Observer under its
// lock, and GrantCallbacks after it has let go of it.
#ifndef UBD_CORE_BROKER_H_
#define UBD_CORE_BROKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/clock.h"
#include "daemon/core/event.h"
#include "daemon/core/lease_words.h"
#include "daemon/core/listings.h"
#include "daemon/core/memory.h"
#include "daemon/core/requests.h"
#include "proto/wire/mutex.h"

namespace ubd {

class BrokerSection;
class BrokerState;

// How long a request that does not wait still does for memory that is on its way.
inline constexpr absl::Duration kPatience = absl::Seconds(1);

// Names one call of Acquire; never 0, never used twice.
using ClaimId = uint64_t;

// Keeps a lease's blocks from being reclaimed. Move-only; unpins when destroyed. Must not outlive its Broker.
class LeasePin {
 public:
  LeasePin() = default;
  LeasePin(LeasePin&& other) noexcept;
  LeasePin& operator=(LeasePin&& other) noexcept;
  ~LeasePin();
  const std::vector<GrantedBlock>& blocks() const { return blocks_; }

 private:
  friend class Broker;
  class Broker* broker_ = nullptr;
  LeaseId lease_;
  std::vector<GrantedBlock> blocks_;
};

// Keeps the blocks of a range out of reuse while a device works on them; they count as in flight. Move-only; unpins
// when destroyed, which must be when the device is done and not before. Must not outlive its Broker.
class RangePin {
 public:
  RangePin() = default;
  RangePin(RangePin&& other) noexcept;
  RangePin& operator=(RangePin&& other) noexcept;
  ~RangePin();
  bool valid() const { return broker_ != nullptr; }
  // In the order of the lease's bytes; one or more unless the range was empty.
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  friend class Broker;
  class Broker* broker_ = nullptr;
  LeaseId lease_;
  std::vector<Piece> pieces_;
};

// Everything that the Broker calls. All must outlive it.
struct BrokerDeps {
  const Clock& clock;
  BlockMemory& memory;
  LeaseWords& words;
  Observer& observer;
  // Fills the span with unpredictable bytes (share tickets).
  std::function<void(absl::Span<uint8_t>)> random;
};

class Broker : public ReclaimSink {
 public:
  // Blocks are numbered through the pools in order; each pool's UB addresses start at a multiple of 1 GiB, after the
  // previous pool's.
  Broker(const std::vector<PoolSpec>& pools, const BrokerLimits& limits, const BrokerDeps& deps);
  ~Broker() override;

  // --- sessions
  // Must come before any request of the session.
  void OpenSession(const SessionFacts& facts);
  // Ends all its waits (ABORTED/SESSION_ENDED), tickets, shares and leases; their memory gets fresh backing.
  // Idempotent.
  void CloseSession(SessionId session, SessionEnd end);

  // --- leases
  // Calls `done` once: at once, or when granted, superseded (same request id), timed out, abandoned, or ended with its
  // session. A request id that already has a lease gets that lease again; one that still waits keeps its place, and the
  // newer caller takes over.
  ClaimId Acquire(const AcquireRequest& request, GrantCallback done);
  // The caller has gone: ends the wait (CANCELLED), or the lease if the request had become one; its memory counts as
  // exposed. With the `claim` that Acquire returned this speaks for that one call only: false, and nothing happens,
  // once a retry has taken over. Without, for the client itself giving up the request. False, too, when there is no
  // such request.
  bool Abandon(SessionId session, RequestId request, std::optional<ClaimId> claim = std::nullopt);
  // Owner: ends the lease for all holders, cleanly. Other holder: ends its own part.
  absl::Status Release(SessionId session, LeaseId lease);
  // Instead of Release, for a grant whose fds could not be delivered: whatever was sent counts as exposed.
  void FailDelivery(SessionId session, LeaseId lease);
  absl::StatusOr<Ticket> Share(const ShareRequest& request);
  absl::StatusOr<Grant> Attach(SessionId session, const TicketId& ticket);
  // For the delivery of fds and for transfers. NOT_FOUND when `session` does not hold the lease, FAILED_PRECONDITION
  // when its access does not suffice.
  absl::StatusOr<LeasePin> Pin(SessionId session, LeaseId lease, Access needed);
  // For one transfer, checked in this order: NOT_FOUND/NO_SUCH_LEASE (not held by `session`, or ended),
  // STALE_GENERATION, READ_ONLY, OUT_OF_RANGE (no overflow for any values). Fast: called for every transfer.
  absl::StatusOr<RangePin> PinRange(const RangeRequest& request);
  // Makes a client's own memory, already mapped and registered as `block` (Memory::AddOwn), a lease of `session`:
  // charged to its quota, in no pool (kOwnPool), never free, cached, recalled or shared (NOT_SHAREABLE). It lies at a
  // UB address of its own, after all pools. Refused like an Acquire of its size, and beyond max_own_per_uid. Its end is
  // BlockMemory::DropOwn once nothing is in flight. On an error nothing is charged and DropOwn is the caller's.
  absl::StatusOr<Grant> GrantOwn(SessionId session, BlockId block, Bytes bytes, Access access);

  // --- operator
  absl::Status Revoke(const Viewer& viewer, LeaseId lease, const std::string& why);
  // While draining nothing new is granted: UNAVAILABLE/DRAINING, also to those who wait; cached leases are recalled,
  // and clients feel pressure so that they cache nothing more. Leases that exist can still be shared and attached.
  // Returns leases left.
  uint64_t SetDrain(bool drain);
  // Final: refuses everything new with UNAVAILABLE/STOPPING.
  void Stop(const std::string& why);

  // Takes effect for what comes; a waiter that is now over its quota is refused at its turn.
  void SetLimits(const BrokerLimits& limits);

  // --- time. Tick does what is due; NextDeadline says when it should be called again (none: not before something else
  // happens).
  void Tick();
  std::optional<MonoTime> NextDeadline() const;
  // Called (without the lock) whenever NextDeadline may have become earlier.
  void OnDeadlineChange(std::function<void()> poke);

  // --- ReclaimSink
  void BlockFree(BlockId block, bool fresh) override;
  void BlockRecycling(BlockId block) override;
  void BackingRetired(BlockId block, const Charge& charge) override;
  void BackingFreed(BlockId block, const Charge& charge) override;
  void TamperingFound(BlockId block, const Charge& charge, const std::string& what) override;

  // --- listings
  std::vector<PoolListing> Pools() const;
  std::vector<BlockListing> Blocks(const Viewer& viewer) const;
  std::vector<LeaseListing> Leases(const Viewer& viewer) const;
  std::vector<SessionListing> Sessions(const Viewer& viewer) const;
  BrokerTotals Totals() const;
  // The UB address of a block; the same for the life of the daemon, or of the lease of a client's own memory.
  UbAddr AddrOf(BlockId block) const;

  // For tests: recomputes every sum and cross-reference; INTERNAL names the first that is wrong.
  absl::Status CheckInvariants() const;

 private:
  friend class BrokerSection;
  friend class LeasePin;
  friend class RangePin;
  void Unpin(LeaseId lease);
  void UnpinRange(LeaseId lease, const std::vector<Piece>& pieces);

  mutable ub::Mutex mu_;
  std::unique_ptr<BrokerState> state_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_CORE_BROKER_H_
