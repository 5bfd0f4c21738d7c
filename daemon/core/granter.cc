#include "daemon/core/granter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/core/refusals.h"

namespace ubd {

ClaimId Granter::Acquire(const AcquireRequest& request, GrantCallback done) {
  ClaimId claim = ++last_claim_;
  SessionRecord* session = data_.sessions.Find(request.session);
  if (data_.stopping || session == nullptr) {
    data_.outbox.Add(std::move(done), data_.stopping ? refusal::Stopping(data_.why_stopping) : refusal::SessionEnded());
    return claim;
  }
  if (auto known = session->requests.find(request.request); known != session->requests.end()) {
    Retry(request, *session, known->second, claim, std::move(done));
    return claim;
  }
  absl::StatusOr<Waiter> waiter = admission_.Admit(request, *session);
  if (!waiter.ok()) {
    data_.outbox.Add(std::move(done), waiter.status());
    return claim;
  }
  waiter->done = std::move(done);
  Start(*std::move(waiter), *session, claim);
  return claim;
}

void Granter::Start(Waiter waiter, SessionRecord& session, ClaimId claim) {
  PoolState& pool = data_.PoolOf(waiter.pool);
  if (pool.queue.empty() && pool.blocks.UsableBy(waiter.uid) >= waiter.blocks &&
      !data_.quotas.TestsMayExceed(waiter.uid, waiter.bytes)) {
    GrantTo(std::move(waiter), claim);
    return;
  }
  absl::Status refused = admission_.MayWait(waiter);
  if (waiter.patient && !OnItsWay(pool, waiter.blocks)) refused = refusal::PoolEmpty(pool, waiter.bytes);
  if (!refused.ok()) {
    data_.outbox.Add(std::move(waiter.done), refused);
    return;
  }
  Enqueue(std::move(waiter), session, claim);
}

void Granter::Retry(const AcquireRequest& request, SessionRecord& session, RequestRecord& known, ClaimId claim,
                    GrantCallback done) {
  Waiter* waiter = known.waiter == 0 ? nullptr : data_.PoolOf(known.pool).queue.Find(known.waiter);
  Lease* lease = data_.leases.FindLive(known.lease);
  Bytes bytes = waiter != nullptr ? waiter->bytes : lease != nullptr ? lease->bytes : Bytes();
  if (absl::Status other = admission_.SameRequest(request, known.pool, bytes); !other.ok()) {
    data_.outbox.Add(std::move(done), other);
    return;
  }
  known.claim = claim;
  if (waiter != nullptr) {
    data_.outbox.Add(std::exchange(waiter->done, std::move(done)), refusal::Superseded());
    data_.deadlines.Remove(Deadlines::Of(*waiter));
    waiter->patient = request.wait <= absl::ZeroDuration();
    waiter->deadline = admission_.DeadlineFor(request.wait);
    data_.deadlines.Add(Deadlines::Of(*waiter));
    return;
  }
  Grant grant = life_.Describe(*lease, *lease->HolderOf(session.facts.id));
  grant.repeated = true;
  data_.outbox.Add(std::move(done), std::move(grant));
}

void Granter::Enqueue(Waiter waiter, SessionRecord& session, ClaimId claim) {
  PoolState& pool = data_.PoolOf(waiter.pool);
  waiter.id = ++last_waiter_;
  session.requests[waiter.request.request] = {claim, waiter.id, waiter.pool, LeaseId()};
  data_.quotas.AddWaiter(session.facts.id, waiter.uid, waiter.bytes);
  data_.deadlines.Add(Deadlines::Of(waiter));
  pool.queue.Push(std::move(waiter));
  ++data_.waiters;
  pool.dirty = true;
  data_.RaisePressure();
}

std::optional<Waiter> Granter::Dequeue(PoolId pool_id, WaiterId id) {
  PoolState& pool = data_.PoolOf(pool_id);
  std::optional<Waiter> waiter = pool.queue.Remove(id);
  if (!waiter) return std::nullopt;
  data_.deadlines.Remove(Deadlines::Of(*waiter));
  data_.quotas.SubWaiter(waiter->request.session, waiter->uid, waiter->bytes);
  --data_.waiters;
  pool.dirty = true;
  return waiter;
}

void Granter::Refuse(PoolId pool, WaiterId id, const absl::Status& why) {
  std::optional<Waiter> waiter = Dequeue(pool, id);
  if (!waiter) return;
  if (SessionRecord* session = data_.sessions.Find(waiter->request.session)) {
    session->requests.erase(waiter->request.request);
  }
  data_.outbox.Add(std::move(waiter->done), why);
}

void Granter::GrantTo(Waiter waiter, ClaimId claim) {
  SessionRecord& session = *data_.sessions.Find(waiter.request.session);
  Lease& lease = life_.Make(waiter, session);
  session.owned.insert(lease.id);
  session.requests[lease.request] = {claim, 0, lease.pool, lease.id};
  data_.outbox.Add(std::move(waiter.done), life_.Describe(lease, lease.owner));
}

bool Granter::Abandon(SessionId session_id, RequestId request, std::optional<ClaimId> claim) {
  SessionRecord* session = data_.sessions.Find(session_id);
  if (session == nullptr) return false;
  auto known = session->requests.find(request);
  if (known == session->requests.end() || (claim && known->second.claim != *claim)) return false;
  RequestRecord record = known->second;
  if (record.waiter != 0) {
    Refuse(record.pool, record.waiter, refusal::Abandoned());
  } else if (Lease* lease = data_.leases.FindLive(record.lease)) {
    // Mostly its client was killed in the middle of the call, and the call's end is heard of before the session's.
    life_.End(*lease, LeaseEnd::kReclaimed, "its caller had gone");
    ++data_.reclaimed_leases;
  }
  return true;
}

void Granter::EndWaitsOf(SessionRecord& session, const absl::Status& why) {
  std::vector<RequestRecord> waits;
  for (const auto& [request, record] : session.requests) {
    if (record.waiter != 0) waits.push_back(record);
  }
  std::sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.waiter < b.waiter; });
  for (const RequestRecord& record : waits) Refuse(record.pool, record.waiter, why);
}

void Granter::EndAllWaits(const absl::Status& why) {
  for (PoolState& pool : data_.pools) {
    while (Waiter* head = pool.queue.Head()) Refuse(pool.blocks.id(), head->id, why);
  }
}

void Granter::TimeOut(PoolId pool_id, WaiterId id) {
  PoolState& pool = data_.PoolOf(pool_id);
  Waiter* waiter = pool.queue.Find(id);
  if (waiter == nullptr) return;
  const Pool& blocks = pool.blocks;
  uint64_t unused = uint64_t{blocks.count(BlockState::kFree)} + blocks.count(BlockState::kDraining) +
                    blocks.count(BlockState::kRecycling);
  // Nobody uses the memory, but there is no page for fresh backing: waiting longer is no cure.
  bool stuck = pool.retired > 0 && blocks.count(BlockState::kRecycling) > 0 && unused >= waiter->blocks;
  if (waiter->patient || stuck) {
    Refuse(pool_id, id, refusal::PoolEmpty(pool, waiter->bytes));
  } else {
    Refuse(pool_id, id, refusal::WaitTimeout(pool, waiter->bytes, data_.Now() - waiter->since));
  }
}

bool Granter::OnItsWay(const PoolState& pool, uint32_t wanted) const {
  const Pool& blocks = pool.blocks;
  int64_t have = int64_t{blocks.count(BlockState::kFree)} + blocks.count(BlockState::kDraining) +
                 blocks.count(BlockState::kRecycling) - static_cast<int64_t>(pool.queue.demand());
  if (have >= wanted) return true;
  for (const auto& [generation, id] : data_.recalls.OfPool(blocks.id()).all()) {
    const Lease& lease = *data_.leases.Find(id);
    if (!data_.IsIdle(lease)) continue;
    have += static_cast<int64_t>(lease.blocks.size());
    if (have >= wanted) return true;
  }
  return false;
}

void Granter::Settle() {
  for (PoolState& pool : data_.pools) {
    while (std::exchange(pool.dirty, false)) Serve(pool);
  }
  data_.LowerPressure();
}

void Granter::Serve(PoolState& pool) {
  while (Waiter* head = pool.queue.Head()) {
    SessionRecord& session = *data_.sessions.Find(head->request.session);
    // Retired memory, or a new limit, may have used up the quota since. What the waiter asks for is already counted.
    absl::Status over = admission_.MakeRoomInQuota(session.facts.id, head->uid, Bytes());
    if (!over.ok()) {
      Refuse(pool.blocks.id(), head->id, over);
      continue;
    }
    if (pool.blocks.UsableBy(head->uid) < head->blocks || data_.quotas.TestsMayExceed(head->uid, Bytes())) break;
    ClaimId claim = session.requests[head->request.request].claim;
    GrantTo(*Dequeue(pool.blocks.id(), head->id), claim);
  }
  pool.dirty = false;
  if (Waiter* head = pool.queue.Head()) MakeRoom(pool, *head);
}

void Granter::MakeRoom(PoolState& pool, const Waiter& head) {
  uint32_t have = pool.blocks.UsableBy(head.uid) + pool.blocks.coming_fresh();
  if (head.blocks > have) {
    for (BlockId id : pool.blocks.TakeForeign(head.uid, head.blocks - have)) {
      ReclaimOrder order;
      order.must_be_fresh = true;
      order.charge = {*pool.blocks.block(id).last_uid};
      data_.deps.memory.Reclaim(id, std::move(order));
    }
  }
  // What is idle in a cache serves whoever waits, not the head alone. Blocks that failed their test may be stuck, so
  // they do not count.
  int64_t soon = int64_t{pool.blocks.count(BlockState::kFree)} + pool.blocks.coming_fresh() + pool.blocks.in_test();
  Recall(pool, static_cast<int64_t>(pool.queue.demand()) - soon);
}

void Granter::Recall(PoolState& pool, int64_t blocks) {
  RecallList& idle = data_.recalls.OfPool(pool.blocks.id());
  while (blocks > 0) {
    std::optional<LeaseId> next = idle.Next();
    if (!next) return;
    Lease& lease = *data_.leases.Find(*next);
    auto size = static_cast<int64_t>(lease.blocks.size());
    if (life_.TryRecall(lease)) blocks -= size;
  }
}

void Granter::RecallAll() {
  data_.RaisePressure();
  data_.recalls.Rewind();
  for (PoolState& pool : data_.pools) Recall(pool, INT64_MAX);
}

}  // namespace ubd
