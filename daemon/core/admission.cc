#include "daemon/core/admission.h"

#include <algorithm>

#include "daemon/core/refusals.h"

namespace ubd {
namespace {

// How many of one's own leases a request over quota makes the Broker look at. The next one goes on where this one
// stopped.
constexpr size_t kMaxQuotaScan = 1024;

// `bytes` is at most the pool's size.
Bytes WholeBlocks(const PoolSpec& spec, Bytes bytes) {
  return spec.block_bytes * ub::PiecesFor(bytes, spec.block_bytes);
}

}  // namespace

absl::Status Admission::CheckSize(const PoolState& pool, const AcquireRequest& request, Uid uid) const {
  if (request.bytes == Bytes()) return refusal::BadField("bytes", "must be at least 1");
  if (request.bytes > pool.blocks.size()) return refusal::LargerThanPool(pool, request.bytes);
  return CheckQuotaHolds(WholeBlocks(pool.blocks.spec(), request.bytes), uid);
}

absl::Status Admission::CheckQuotaHolds(Bytes bytes, Uid uid) const {
  if (std::optional<Bytes> limit = data_.quotas.LimitOf(uid); limit && bytes > *limit) {
    return refusal::LargerThanQuota({false, *limit, Bytes(), bytes});
  }
  if (const std::optional<Bytes>& limit = data_.limits.default_per_session; limit && bytes > *limit) {
    return refusal::LargerThanQuota({true, *limit, Bytes(), bytes});
  }
  return absl::OkStatus();
}

absl::StatusOr<Waiter> Admission::Admit(const AcquireRequest& request, const SessionRecord& session) {
  if (data_.draining) return refusal::Draining();
  PoolState* pool = data_.FindPool(request.pool);
  if (pool == nullptr) return refusal::NoSuchPool(request.pool);
  Uid uid = session.facts.uid;
  if (absl::Status bad = CheckSize(*pool, request, uid); !bad.ok()) return bad;
  if (request.ttl && *request.ttl <= absl::ZeroDuration()) return refusal::BadField("ttl", "must be longer than 0");
  uint64_t waiting = data_.quotas.OfSession(session.facts.id).waiters;
  if (session.owned.size() + session.attached.size() + waiting >= data_.limits.max_leases_per_session) {
    return refusal::TooManyLeases(data_.limits.max_leases_per_session);
  }
  Waiter waiter;
  waiter.request = request;
  waiter.uid = uid;
  waiter.pool = pool->blocks.id();
  waiter.bytes = WholeBlocks(pool->blocks.spec(), request.bytes);
  waiter.blocks = static_cast<uint32_t>(waiter.bytes / pool->blocks.spec().block_bytes);
  waiter.ttl = request.ttl;
  if (data_.limits.max_ttl) waiter.ttl = std::min(request.ttl.value_or(*data_.limits.max_ttl), *data_.limits.max_ttl);
  if (absl::Status over = MakeRoomInQuota(session.facts.id, uid, waiter.bytes); !over.ok()) return over;
  waiter.since = data_.Now();
  waiter.patient = request.wait <= absl::ZeroDuration();
  waiter.deadline = DeadlineFor(request.wait);
  return waiter;
}

absl::Status Admission::AdmitOwn(const SessionRecord& session, Bytes bytes) {
  if (data_.draining) return refusal::Draining();
  SessionId id = session.facts.id;
  Uid uid = session.facts.uid;
  if (bytes == Bytes() || bytes > ub::GiB(1)) return refusal::BadField("bytes", "must be 1 to 1GiB");
  if (absl::Status never = CheckQuotaHolds(bytes, uid); !never.ok()) return never;
  uint64_t waiting = data_.quotas.OfSession(id).waiters;
  if (session.owned.size() + session.attached.size() + waiting >= data_.limits.max_leases_per_session) {
    return refusal::TooManyLeases(data_.limits.max_leases_per_session);
  }
  auto of_uid = std::count_if(data_.own.begin(), data_.own.end(),
                              [&](const auto& entry) { return data_.leases.Find(entry.second)->owner.uid == uid; });
  if (static_cast<uint64_t>(of_uid) >= data_.limits.max_own_per_uid) {
    return refusal::TooManyOwn(data_.limits.max_own_per_uid);
  }
  return MakeRoomInQuota(id, uid, bytes);
}

absl::Status Admission::SameRequest(const AcquireRequest& request, PoolId pool, Bytes bytes) {
  PoolState* asked = data_.FindPool(request.pool);
  if (asked == nullptr || asked->blocks.id() != pool || request.bytes == Bytes() ||
      request.bytes > asked->blocks.size() || WholeBlocks(asked->blocks.spec(), request.bytes) != bytes) {
    return refusal::BadField("request_id", "names another request of this session that is still alive");
  }
  return absl::OkStatus();
}

absl::Status Admission::MayWait(const Waiter& waiter) const {
  if (data_.quotas.OfUid(waiter.uid).waiters < data_.limits.max_waiters_per_uid) return absl::OkStatus();
  return refusal::TooManyWaiters(data_.limits.max_waiters_per_uid);
}

MonoTime Admission::DeadlineFor(absl::Duration wait) const {
  if (wait <= absl::ZeroDuration()) return data_.Now() + kPatience;
  return data_.Now() + std::min(wait, data_.limits.max_wait);
}

absl::Status Admission::MakeRoomInQuota(SessionId session, Uid uid, Bytes asked) {
  size_t looks = 0;
  while (std::optional<OverQuota> over = data_.quotas.Check(session, uid, asked)) {
    RecallList* idle = over->of_session ? data_.recalls.OfSession(session) : data_.recalls.OfUid(uid);
    size_t most = idle == nullptr ? 0 : std::min(idle->size(), kMaxQuotaScan - looks);
    bool recalled = false;
    for (size_t i = 0; i < most && !recalled; ++i, ++looks) {
      recalled = life_.TryRecall(*data_.leases.Find(*idle->NextAround()));
    }
    if (!recalled) return refusal::QuotaExceeded(*over);
  }
  return absl::OkStatus();
}

}  // namespace ubd
