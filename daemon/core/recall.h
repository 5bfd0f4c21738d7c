// Leases that have a word, so that an idle one can be taken back without asking its client: per pool, per uid and per
// session, oldest first. Not thread-safe: under the Broker's lock.
//
// A scan remembers how far it came. Under pressure a lease that was found busy need not be looked at again: its client
// will see the pressure when it is done, and release (proto/wire/lease_word.h). So each lease costs one look per spell
// of pressure, not one per freed block. Rewind starts a new spell.
#ifndef UBD_CORE_RECALL_H_
#define UBD_CORE_RECALL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/core/lease.h"

namespace ubd {

class RecallList {
 public:
  void Add(const Lease& lease) { leases_.emplace(lease.generation, lease.id); }
  void Remove(const Lease& lease) { leases_.erase(lease.generation); }
  bool empty() const { return leases_.empty(); }
  size_t size() const { return leases_.size(); }
  void Rewind() { seen_ = Generation(); }
  // The oldest lease that was not seen since Rewind.
  std::optional<LeaseId> Next();
  // The next one round and round; none only when empty. For scans with a budget.
  std::optional<LeaseId> NextAround();
  const absl::btree_map<Generation, LeaseId>& all() const { return leases_; }

 private:
  absl::btree_map<Generation, LeaseId> leases_;  // a generation tells the age
  Generation seen_;
};

class RecallBook {
 public:
  explicit RecallBook(size_t pools) : of_pool_(pools) {}

  void Add(const Lease& lease);
  void Remove(const Lease& lease);
  void Rewind();
  RecallList& OfPool(PoolId pool) { return of_pool_[pool.value()]; }
  const RecallList& OfPool(PoolId pool) const { return of_pool_[pool.value()]; }
  // Null: none.
  RecallList* OfUid(Uid uid);
  RecallList* OfSession(SessionId session);

 private:
  std::vector<RecallList> of_pool_;
  absl::flat_hash_map<Uid, RecallList> of_uid_;
  absl::flat_hash_map<SessionId, RecallList> of_session_;
};

}  // namespace ubd

#endif  // UBD_CORE_RECALL_H_
