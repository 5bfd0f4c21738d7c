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
  // What a holder gets to know of its lease.
  Grant Describe(const Lease& lease, const Holder& holder) const;

  // Ends it for all holders. `lease` may be gone afterwards.
  void End(Lease& lease, LeaseEnd how, const std::string& text);
  // Ends the part of an attached share. Not clean: what it had of the lease stays exposed.
  void Detach(Lease& lease, SessionId session, bool clean, const std::string& text);
  // Gives the word back, so that the lease can no longer be cached.
  void DropWord(Lease& lease);
  // Ends it if its client has it idle. True: it was.
  bool TryRecall(Lease& lease);

  void Pin(Lease& lease) { ++lease.pins; }
  void Unpin(LeaseId id);

 private:
  ReclaimOrder OrderFor(const Lease& lease, LeaseEnd how) const;
  // Nothing is pinned: hands the blocks to the memory layer and forgets the lease.
  void Bury(Lease& lease);

  BrokerData& data_;
};

}  // namespace ubd

#endif  // UBD_CORE_LEASE_LIFE_H_
