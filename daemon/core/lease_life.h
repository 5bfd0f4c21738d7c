// The life of a lease: made by a grant, ended in one of several ways, its blocks on their way back once nothing is
// pinned. This is where the fourth part of the reuse rule is decided: a backing passes on as it is only after a clean
// end, and only within one uid. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_LEASE_LIFE_H_
#define UBD_CORE_LEASE_LIFE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/broker_data.h"

namespace ubd {

enum class LeaseEnd : uint8_t {
  kReleased,     // clean
  kRecalled,     // clean, its client unmaps in a moment
  kUndelivered,  // the rest are not: fresh backing
  kRevoked,
  kExpired,
  kReclaimed,
};

class LeaseLife {
 public:
  explicit LeaseLife(BrokerData& data) : data_(data) {}

  // Takes the blocks (there are enough) and makes the lease. `waiter` is in no queue.
  Lease& Make(const Waiter& waiter, const SessionRecord& session);
  // A client's own memory, as a lease of one block.
  Lease& MakeOwn(SessionRecord& session, BlockId block, Bytes bytes, Access access);
  // What a holder gets to know of its lease.
  Grant Describe(const Lease& lease, const Holder& holder) const;

  // Ends it for all holders. `lease` may be gone afterwards.
  void End(Lease& lease, LeaseEnd how, const std::string& text);
  // Ends the part of an attached share. Not clean: what it had of the lease stays exposed.
  void Detach(Lease& lease, SessionId session, bool clean, const std::string& text);
  // Gives the word back, so that the lease can no longer be cached.
  void DropWord(Lease& lease);
  // Ends it if its client has it idle and nothing is in flight on it. True: it was. One that is pinned is looked at
  // again when it no longer is.
  bool TryRecall(Lease& lease);

  void Pin(Lease& lease) { ++lease.pins; }
  void Unpin(LeaseId id);
  // For a transfer; the range lies within the lease.
  std::vector<Piece> PinRange(Lease& lease, Bytes offset, Bytes length);
  void UnpinRange(LeaseId id, const std::vector<Piece>& pieces);

 private:
  // What all new leases have in common; charges the owner.
  void Open(Lease& lease, const SessionRecord& session, Access access);
  ReclaimOrder OrderFor(const Lease& lease, LeaseEnd how) const;
  // Nothing is pinned: hands the blocks to the memory layer and forgets the lease.
  void Bury(Lease& lease);
  uint64_t& InFlight(Lease& lease, BlockId block);

  BrokerData& data_;
};

}  // namespace ubd

#endif  // UBD_CORE_LEASE_LIFE_H_
