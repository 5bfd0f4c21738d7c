#include "daemon/core/broker_state.h"

#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/refusals.h"

namespace ubd {
namespace {

const char* EndText(SessionEnd end) {
  switch (end) {
    case SessionEnd::kHangUp:
      return "its session hung up";
    case SessionEnd::kDied:
      return "its process ended";
    case SessionEnd::kProtocol:
      return "its session broke the protocol";
    case SessionEnd::kShutdown:
      return "the daemon is stopping";
  }
  return "its session ended";
}

Event OfSession(EventKind kind, const SessionFacts& facts, std::string text) {
  return Event{.kind = kind, .session = facts.id, .uid = facts.uid, .pid = facts.pid, .text = std::move(text)};
}

}  // namespace

void BrokerState::OpenSession(const SessionFacts& facts) {
  if (data.sessions.Open(facts, data.Now())) data.Emit(OfSession(EventKind::kSessionOpened, facts, facts.name));
}

void BrokerState::CloseSession(SessionId id, SessionEnd end) {
  SessionRecord* session = data.sessions.Find(id);
  if (session == nullptr) return;
  const char* text = EndText(end);
  granter.EndWaitsOf(*session, refusal::SessionEnded());
  // Ending a lease takes it out of the sets.
  const absl::btree_set<LeaseId> owned = session->owned;
  const absl::btree_set<LeaseId> attached = session->attached;
  for (LeaseId lease : owned) life.End(*data.leases.FindLive(lease), LeaseEnd::kReclaimed, text);
  for (LeaseId lease : attached) life.Detach(*data.leases.FindLive(lease), id, /*clean=*/false, text);
  if (end != SessionEnd::kShutdown) {
    data.reclaimed_leases += owned.size();
    data.reclaimed_sessions += owned.empty() ? 0 : 1;
  }
  data.Emit(OfSession(EventKind::kSessionClosed, session->facts, text));
  data.sessions.Close(id);
}

absl::Status BrokerState::Release(SessionId session, LeaseId id) {
  Lease* lease = data.leases.FindHeld(session, id);
  if (lease == nullptr) return refusal::NoSuchLease();
  if (lease->owner.session == session) {
    life.End(*lease, LeaseEnd::kReleased, "");
  } else {
    life.Detach(*lease, session, /*clean=*/true, "");
  }
  return absl::OkStatus();
}

void BrokerState::FailDelivery(SessionId session, LeaseId id) {
  Lease* lease = data.leases.FindHeld(session, id);
  if (lease == nullptr) return;
  constexpr char kText[] = "its descriptors could not be delivered";
  if (lease->owner.session == session) {
    life.End(*lease, LeaseEnd::kUndelivered, kText);
  } else {
    life.Detach(*lease, session, /*clean=*/false, kText);
  }
}

absl::StatusOr<std::vector<GrantedBlock>> BrokerState::Pin(SessionId session, LeaseId id, Access needed) {
  Lease* lease = data.leases.FindHeld(session, id);
  if (lease == nullptr) return refusal::NoSuchLease();
  const Holder& holder = *lease->HolderOf(session);
  if (needed == Access::kReadWrite && holder.access != Access::kReadWrite) {
    return refusal::ReadOnly();
  }
  life.Pin(*lease);
  return life.Describe(*lease, holder).blocks;
}

absl::StatusOr<std::vector<Piece>> BrokerState::PinRange(const RangeRequest& request) {
  Lease* lease = data.leases.FindLive(request.lease);
  const Holder* holder = lease == nullptr ? nullptr : lease->HolderOf(request.session);
  if (holder == nullptr) return refusal::NoSuchLease();
  if (static_cast<uint32_t>(lease->generation.value()) != request.generation) return refusal::StaleGeneration();
  if (request.needed == Access::kReadWrite && holder->access != Access::kReadWrite) return refusal::ReadOnly();
  if (request.offset > lease->bytes || request.length > lease->bytes - request.offset) {
    return refusal::OutOfRange(request.offset, request.length, lease->bytes);
  }
  return life.PinRange(*lease, request.offset, request.length);
}

absl::StatusOr<Grant> BrokerState::GrantOwn(SessionId id, BlockId block, Bytes bytes, Access access) {
  if (data.stopping) return refusal::Stopping(data.why_stopping);
  SessionRecord* session = data.sessions.Find(id);
  if (session == nullptr) return refusal::SessionEnded();
  if (access != Access::kReadWrite && access != Access::kReadOnly) {
    return refusal::BadField("access", "must be read-write or read-only");
  }
  if (data.PoolOf(block) != nullptr || data.own.contains(block)) {
    return absl::InternalError(absl::StrCat("block ", block.value(), " is in use already"));
  }
  if (absl::Status refused = admission.AdmitOwn(*session, bytes); !refused.ok()) return refused;
  Lease& lease = life.MakeOwn(*session, block, bytes, access);
  return life.Describe(lease, lease.owner);
}

absl::Status BrokerState::Revoke(const Viewer& viewer, LeaseId id, const std::string& why) {
  Lease* lease = data.leases.FindLive(id);
  if (lease == nullptr || !(viewer.admin || lease->owner.uid == viewer.uid)) return refusal::NoSuchLease();
  life.End(*lease, LeaseEnd::kRevoked, why);
  return absl::OkStatus();
}

uint64_t BrokerState::SetDrain(bool drain) {
  if (drain != data.draining) {
    data.draining = drain;
    data.Emit(Event{.kind = drain ? EventKind::kDraining : EventKind::kResumed});
  }
  if (drain) {
    granter.EndAllWaits(refusal::Draining());
    granter.RecallAll();
  }
  return data.leases.size();
}

void BrokerState::Stop(const std::string& why) {
  if (data.stopping) return;
  data.stopping = true;
  data.why_stopping = why;
  granter.EndAllWaits(refusal::Stopping(why));
  data.Emit(Event{.kind = EventKind::kStopping, .text = why});
}

void BrokerState::Tick() {
  MonoTime now = data.Now();
  while (std::optional<Deadline> due = data.deadlines.PopDue(now)) {
    if (due->kind == Deadline::Kind::kWait) {
      granter.TimeOut(due->pool, due->id);
    } else if (Lease* lease = data.leases.FindLive(LeaseId(due->id))) {
      life.End(*lease, LeaseEnd::kExpired, "its time to live is over");
    }
  }
}

bool BrokerState::Settle() {
  granter.Settle();
  std::optional<MonoTime> earliest = data.deadlines.Earliest();
  bool earlier = earliest && (!announced_ || *earliest < *announced_);
  announced_ = earliest;
  return earlier && poke;
}

}  // namespace ubd
