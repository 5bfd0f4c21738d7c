#include "daemon/core/lease_life.h"

#include <algorithm>
#include <utility>

namespace ubd {
namespace {

struct Telling {
  EventKind owner;
  EventKind shares;
  bool clean;
};

Telling TellingOf(LeaseEnd how) {
  switch (how) {
    case LeaseEnd::kReleased:
      return {EventKind::kReleased, EventKind::kOwnerReleased, true};
    case LeaseEnd::kRecalled:
      return {EventKind::kRecalled, EventKind::kOwnerReleased, true};
    case LeaseEnd::kUndelivered:
      return {EventKind::kReleased, EventKind::kOwnerReleased, false};
    case LeaseEnd::kRevoked:
      return {EventKind::kRevoked, EventKind::kRevoked, false};
    case LeaseEnd::kExpired:
      return {EventKind::kExpired, EventKind::kExpired, false};
    case LeaseEnd::kReclaimed:
      break;
  }
  return {EventKind::kReclaimed, EventKind::kOwnerReleased, false};
}

void AddOnce(std::vector<Uid>& uids, Uid uid) {
  if (std::find(uids.begin(), uids.end(), uid) == uids.end()) uids.push_back(uid);
}

}  // namespace

Lease& LeaseLife::Make(const Waiter& waiter, const SessionRecord& session) {
  PoolState& pool = data_.PoolOf(waiter.pool);
  Lease& lease = data_.leases.Create();
  lease.pool = waiter.pool;
  lease.bytes = waiter.bytes;
  lease.blocks = pool.blocks.Take(waiter.uid, waiter.blocks, lease.id, lease.generation);
  lease.request = waiter.request.request;
  lease.owner = {session.facts.id,   session.facts.uid,  session.facts.pid,
                 session.facts.name, Access::kReadWrite, session.facts.read_only_advisory};
  lease.ever = {waiter.uid};
  lease.granted = data_.Now();
  if (waiter.ttl) {
    lease.expires = lease.granted + *waiter.ttl;
    data_.deadlines.Add({*lease.expires, Deadline::Kind::kLease, lease.id.value(), lease.pool});
  }
  ++pool.leases;
  data_.quotas.AddLeased(lease.owner.session, lease.owner.uid, lease.bytes);
  if (waiter.request.cacheable && !lease.expires) {
    lease.word = data_.deps.words.Assign(lease.owner.session, lease.generation);
    if (lease.word) data_.recalls.Add(lease);
  }
  data_.Emit(EventKind::kGranted, lease, lease.owner, "", lease.granted - waiter.since);
  return lease;
}

Grant LeaseLife::Describe(const Lease& lease, const Holder& holder) const {
  const Pool& pool = data_.PoolOf(lease.pool).blocks;
  Grant grant;
  grant.lease = lease.id;
  grant.generation = lease.generation;
  grant.pool = lease.pool;
  grant.block_bytes = pool.spec().block_bytes;
  grant.blocks.reserve(lease.blocks.size());
  for (BlockId id : lease.blocks) grant.blocks.push_back({id, pool.block(id).addr});
  grant.access = holder.access;
  grant.read_only_advisory = holder.access == Access::kReadOnly && holder.advisory;
  if (holder.session == lease.owner.session) grant.word = lease.word;
  grant.expires = lease.expires;
  return grant;
}

ReclaimOrder LeaseLife::OrderFor(const Lease& lease, LeaseEnd how) const {
  bool one_uid = lease.ever.size() == 1 || data_.PoolOf(lease.pool).blocks.spec().isolation == Isolation::kNone;
  ReclaimOrder order;
  order.must_be_fresh = lease.unclean || !TellingOf(how).clean || !one_uid;
  // Those who learn of the end only now get a moment to unmap.
  bool surprised = how == LeaseEnd::kRecalled || !lease.shares.empty();
  if (surprised && !order.must_be_fresh) order.grace = data_.limits.recall_grace;
  order.charge = {lease.owner.uid};
  for (const Holder& share : lease.shares) AddOnce(order.charge, share.uid);
  for (Uid uid : lease.exposed) AddOnce(order.charge, uid);
  return order;
}

void LeaseLife::End(Lease& lease, LeaseEnd how, const std::string& text) {
  PoolState& pool = data_.PoolOf(lease.pool);
  lease.end = OrderFor(lease, how);
  DropWord(lease);
  data_.tickets.RemoveAllOf(lease.id);
  if (lease.expires) {
    data_.deadlines.Remove({*lease.expires, Deadline::Kind::kLease, lease.id.value(), lease.pool});
  }
  if (SessionRecord* owner = data_.sessions.Find(lease.owner.session)) {
    owner->owned.erase(lease.id);
    owner->requests.erase(lease.request);
  }
  for (const Holder& share : lease.shares) {
    if (SessionRecord* session = data_.sessions.Find(share.session)) session->attached.erase(lease.id);
  }
  std::optional<Uid> next_uid;
  if (!lease.end->must_be_fresh) next_uid = lease.owner.uid;
  for (BlockId id : lease.blocks) pool.blocks.Drain(id, next_uid);
  Telling telling = TellingOf(how);
  data_.Emit(telling.owner, lease, lease.owner, text);
  for (const Holder& share : lease.shares) data_.Emit(telling.shares, lease, share, text);
  if (lease.pins == 0) Bury(lease);
}

void LeaseLife::Bury(Lease& lease) {
  PoolState& pool = data_.PoolOf(lease.pool);
  --pool.leases;
  data_.quotas.SubLeased(lease.owner.session, lease.owner.uid, lease.bytes);
  for (BlockId id : lease.blocks) {
    pool.blocks.ReclaimOrdered(id);
    data_.deps.memory.Reclaim(id, *lease.end);
  }
  data_.leases.Erase(lease.id);
}

void LeaseLife::Detach(Lease& lease, SessionId session, bool clean, const std::string& text) {
  auto share = std::find_if(lease.shares.begin(), lease.shares.end(),
                            [session](const Holder& holder) { return holder.session == session; });
  if (share == lease.shares.end()) return;
  Holder gone = std::move(*share);
  lease.shares.erase(share);
  if (SessionRecord* record = data_.sessions.Find(session)) record->attached.erase(lease.id);
  if (!clean) {
    lease.unclean = true;
    AddOnce(lease.exposed, gone.uid);
  }
  data_.Emit(EventKind::kDetached, lease, gone, text);
}

void LeaseLife::DropWord(Lease& lease) {
  if (!lease.word) return;
  data_.recalls.Remove(lease);
  data_.deps.words.Drop(lease.owner.session, *lease.word, lease.generation);
  lease.word.reset();
}

bool LeaseLife::TryRecall(Lease& lease) {
  if (!lease.word || !data_.deps.words.TryRecall(lease.owner.session, *lease.word, lease.generation)) return false;
  End(lease, LeaseEnd::kRecalled, "idle in its client's cache, and wanted elsewhere");
  return true;
}

void LeaseLife::Unpin(LeaseId id) {
  Lease* lease = data_.leases.Find(id);
  if (lease == nullptr || lease->pins == 0) return;
  if (--lease->pins == 0 && lease->end) Bury(*lease);
}

}  // namespace ubd
