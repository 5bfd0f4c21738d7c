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

void LeaseLife::Open(Lease& lease, const SessionRecord& session, Access access) {
  const SessionFacts& facts = session.facts;
  lease.owner = {facts.id, facts.uid, facts.pid, facts.name, access, facts.read_only_advisory};
  lease.ever = {facts.uid};
  lease.granted = data_.Now();
  data_.quotas.AddLeased(facts.id, facts.uid, lease.bytes);
}

Lease& LeaseLife::MakeOwn(SessionRecord& session, BlockId block, Bytes bytes, Access access) {
  Lease& lease = data_.leases.Create();
  lease.pool = kOwnPool;
  lease.bytes = lease.block_bytes = bytes;
  lease.blocks = {block};
  lease.own = Block{.id = block,
                    .addr = data_.next_own,
                    .state = BlockState::kLeased,
                    .generation = lease.generation,
                    .lease = lease.id};
  data_.next_own = data_.next_own + ub::GiB(1);  // never used again: an old address names nothing
  data_.own.emplace(block, lease.id);
  session.owned.insert(lease.id);
  Open(lease, session, access);
  lease.owner.advisory = false;  // it is the client's own
  data_.Emit(EventKind::kGranted, lease, lease.owner, "");
  return lease;
}

Lease& LeaseLife::Make(const Waiter& waiter, const SessionRecord& session) {
  PoolState& pool = data_.PoolOf(waiter.pool);
  Lease& lease = data_.leases.Create();
  lease.pool = waiter.pool;
  lease.bytes = waiter.bytes;
  lease.block_bytes = pool.blocks.spec().block_bytes;
  lease.blocks = pool.blocks.Take(waiter.uid, waiter.blocks, lease.id, lease.generation);
  lease.request = waiter.request.request;
  Open(lease, session, Access::kReadWrite);
  if (waiter.ttl) {
    lease.expires = lease.granted + *waiter.ttl;
    data_.deadlines.Add({*lease.expires, Deadline::Kind::kLease, lease.id.value(), lease.pool});
  }
  ++pool.leases;
  if (waiter.request.cacheable && !lease.expires) {
    lease.word = data_.deps.words.Assign(lease.owner.session, lease.generation);
    if (lease.word) data_.recalls.Add(lease);
  }
  data_.Emit(EventKind::kGranted, lease, lease.owner, "", lease.granted - waiter.since);
  return lease;
}

Grant LeaseLife::Describe(const Lease& lease, const Holder& holder) const {
  Grant grant;
  grant.lease = lease.id;
  grant.generation = lease.generation;
  grant.pool = lease.pool;
  grant.block_bytes = lease.block_bytes;
  grant.blocks.reserve(lease.blocks.size());
  for (BlockId id : lease.blocks) grant.blocks.push_back({id, data_.BlockOf(lease, id).addr});
  grant.access = holder.access;
  grant.read_only_advisory = holder.access == Access::kReadOnly && holder.advisory;
  if (holder.session == lease.owner.session) grant.word = lease.word;
  grant.expires = lease.expires;
  return grant;
}

ReclaimOrder LeaseLife::OrderFor(const Lease& lease, LeaseEnd how) const {
  if (lease.own) return {};  // is dropped, not reclaimed
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
  lease.end = OrderFor(lease, how);
  lease.ended = data_.Now();
  DropWord(lease);
  data_.tickets.RemoveAllOf(lease.id);
  if (lease.expires) {
    data_.deadlines.Remove({*lease.expires, Deadline::Kind::kLease, lease.id.value(), lease.pool});
  }
  if (SessionRecord* owner = data_.sessions.Find(lease.owner.session)) {
    owner->owned.erase(lease.id);
    if (!lease.own) owner->requests.erase(lease.request);
  }
  for (const Holder& share : lease.shares) {
    if (SessionRecord* session = data_.sessions.Find(share.session)) session->attached.erase(lease.id);
  }
  if (lease.own) {
    lease.own->state = BlockState::kDraining;
  } else {
    std::optional<Uid> next_uid;
    if (!lease.end->must_be_fresh) next_uid = lease.owner.uid;
    for (BlockId id : lease.blocks) data_.PoolOf(lease.pool).blocks.Drain(id, next_uid);
  }
  Telling telling = TellingOf(how);
  data_.Emit(telling.owner, lease, lease.owner, text);
  for (const Holder& share : lease.shares) data_.Emit(telling.shares, lease, share, text);
  if (lease.pins == 0) Bury(lease);
}

void LeaseLife::Bury(Lease& lease) {
  data_.quotas.SubLeased(lease.owner.session, lease.owner.uid, lease.bytes);
  if (lease.own) {
    data_.own.erase(lease.own->id);
    data_.deps.memory.DropOwn(lease.own->id);
  } else {
    PoolState& pool = data_.PoolOf(lease.pool);
    --pool.leases;
    data_.quotas.AddTested(lease.owner.uid, lease.bytes);
    for (BlockId id : lease.blocks) {
      pool.blocks.ReclaimOrdered(id, lease.owner.uid);
      data_.deps.memory.Reclaim(id, *lease.end);
    }
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
  if (!lease.word) return false;
  if (lease.pins > 0) {  // its word may say what it likes
    lease.passed_over = true;
    return false;
  }
  if (!data_.deps.words.TryRecall(lease.owner.session, *lease.word, lease.generation)) return false;
  End(lease, LeaseEnd::kRecalled, "idle in its client's cache, and wanted elsewhere");
  return true;
}

void LeaseLife::Unpin(LeaseId id) {
  Lease* lease = data_.leases.Find(id);
  if (lease == nullptr || lease->pins == 0) return;
  if (--lease->pins > 0) return;
  if (lease->end) return Bury(*lease);
  // Its client may have idled it before it could feel the pressure, and nobody would look at its word again.
  if (std::exchange(lease->passed_over, false) && data_.pressure) TryRecall(*lease);
}

uint64_t& LeaseLife::InFlight(Lease& lease, BlockId block) {
  return lease.own ? lease.own->in_flight : data_.PoolOf(lease.pool).blocks.in_flight(block);
}

std::vector<Piece> LeaseLife::PinRange(Lease& lease, Bytes offset, Bytes length) {
  ++lease.pins;
  ++lease.range_pins;
  std::vector<Piece> pieces;
  if (length == Bytes()) return pieces;
  const uint64_t first = offset / lease.block_bytes;
  const uint64_t last = (offset + length - Bytes(1)) / lease.block_bytes;
  pieces.reserve(last - first + 1);
  Bytes at = offset % lease.block_bytes;
  for (uint64_t i = first; i <= last; ++i) {
    const Bytes part = std::min(length, lease.block_bytes - at);
    pieces.push_back({lease.blocks[i], at, part});
    ++InFlight(lease, lease.blocks[i]);
    length -= part;
    at = Bytes();
  }
  return pieces;
}

void LeaseLife::UnpinRange(LeaseId id, const std::vector<Piece>& pieces) {
  Lease* lease = data_.leases.Find(id);
  if (lease == nullptr || lease->range_pins == 0) return;
  for (const Piece& piece : pieces) --InFlight(*lease, piece.block);
  --lease->range_pins;
  Unpin(id);
}

}  // namespace ubd
