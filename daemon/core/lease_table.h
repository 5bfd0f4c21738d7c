// All leases, live ones and those that have ended but are pinned. Not thread-safe: under the Broker's lock. Records
// stay where they are until erased.
#ifndef UBD_CORE_LEASE_TABLE_H_
#define UBD_CORE_LEASE_TABLE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/core/lease.h"

namespace ubd {

class LeaseTable {
 public:
  // A new lease with an id and a generation that were never used before.
  Lease& Create() {
    auto lease = std::make_unique<Lease>();
    lease->id = LeaseId(++last_id_);
    lease->generation = Generation(++last_generation_);
    Lease& made = *lease;
    leases_.emplace(made.id, std::move(lease));
    return made;
  }
  void Erase(LeaseId id) { leases_.erase(id); }

  // Ended ones too; null: no such lease.
  Lease* Find(LeaseId id) const {
    auto it = leases_.find(id);
    return it == leases_.end() ? nullptr : it->second.get();
  }
  Lease* FindLive(LeaseId id) const {
    Lease* lease = Find(id);
    return lease != nullptr && !lease->end ? lease : nullptr;
  }
  // A live lease that `session` owns or is attached to.
  Lease* FindHeld(SessionId session, LeaseId id) const {
    Lease* lease = FindLive(id);
    return lease != nullptr && lease->HolderOf(session) != nullptr ? lease : nullptr;
  }
  size_t size() const { return leases_.size(); }
  // In order of id; for listings.
  std::vector<const Lease*> All() const;

 private:
  absl::flat_hash_map<LeaseId, std::unique_ptr<Lease>> leases_;
  uint64_t last_id_ = 0;
  uint64_t last_generation_ = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_LEASE_TABLE_H_
