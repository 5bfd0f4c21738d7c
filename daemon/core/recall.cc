#include "daemon/core/recall.h"

namespace ubd {
namespace {

template <class Key>
RecallList* Look(absl::flat_hash_map<Key, RecallList>& map, Key key) {
  auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

template <class Key>
void Drop(absl::flat_hash_map<Key, RecallList>& map, Key key, const Lease& lease) {
  auto it = map.find(key);
  if (it == map.end()) return;
  it->second.Remove(lease);
  if (it->second.empty()) map.erase(it);
}

}  // namespace

std::optional<LeaseId> RecallList::Next() {
  auto it = leases_.upper_bound(seen_);
  if (it == leases_.end()) return std::nullopt;
  seen_ = it->first;
  return it->second;
}

std::optional<LeaseId> RecallList::NextAround() {
  if (std::optional<LeaseId> next = Next()) return next;
  Rewind();
  return Next();
}

void RecallBook::Add(const Lease& lease) {
  of_pool_[lease.pool.value()].Add(lease);
  of_uid_[lease.owner.uid].Add(lease);
  of_session_[lease.owner.session].Add(lease);
}

void RecallBook::Remove(const Lease& lease) {
  of_pool_[lease.pool.value()].Remove(lease);
  Drop(of_uid_, lease.owner.uid, lease);
  Drop(of_session_, lease.owner.session, lease);
}

void RecallBook::Rewind() {
  for (RecallList& list : of_pool_) list.Rewind();
}

RecallList* RecallBook::OfUid(Uid uid) { return Look(of_uid_, uid); }
RecallList* RecallBook::OfSession(SessionId session) { return Look(of_session_, session); }

}  // namespace ubd
