#include "daemon/core/sharing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/core/refusals.h"

namespace ubd {
namespace {

const char* AccessText(Access access) { return access == Access::kReadWrite ? "read-write" : "read-only"; }

}  // namespace

absl::StatusOr<Ticket> Sharing::Share(const ShareRequest& request) {
  if (data_.stopping) return refusal::Stopping(data_.why_stopping);
  if (data_.sessions.Find(request.session) == nullptr) return refusal::SessionEnded();
  Lease* lease = data_.leases.FindLive(request.lease);
  // An attached share cannot be passed on.
  if (lease == nullptr || lease->owner.session != request.session) return refusal::NoSuchLease();
  if (lease->own) return refusal::NotShareable();
  if (request.access != Access::kReadWrite && request.access != Access::kReadOnly) {
    return refusal::BadField("access", "must be read-write or read-only");
  }
  absl::Duration ttl = request.ticket_ttl.value_or(data_.limits.ticket_ttl);
  if (ttl <= absl::ZeroDuration()) return refusal::BadField("ticket_ttl", "must be longer than 0");
  Ticket ticket;
  data_.deps.random(absl::MakeSpan(ticket.id));
  MonoTime now = data_.Now();
  if (!data_.tickets.Add(ticket.id, {lease->id, request.access, request.uid, now + ttl}, now)) {
    return refusal::TooManyTickets();
  }
  ticket.expires_in = ttl;
  life_.DropWord(*lease);  // what others may hold cannot be taken back by one client alone
  data_.Emit(EventKind::kShared, *lease, lease->owner,
             absl::StrCat(AccessText(request.access), " with uid ", request.uid.value()));
  return ticket;
}

absl::StatusOr<Grant> Sharing::Attach(SessionId session_id, const TicketId& id) {
  if (data_.stopping) return refusal::Stopping(data_.why_stopping);
  SessionRecord* session = data_.sessions.Find(session_id);
  if (session == nullptr) return refusal::SessionEnded();
  const SessionFacts& facts = session->facts;
  std::optional<TicketRecord> ticket = data_.tickets.Find(id, facts.uid, data_.Now());
  Lease* lease = ticket ? data_.leases.FindLive(ticket->lease) : nullptr;
  if (lease == nullptr) return refusal::NoSuchTicket();
  if (lease->HolderOf(session_id) != nullptr) {
    return refusal::BadField("ticket", "this session holds the lease already; give the ticket to another one");
  }
  if (session->owned.size() + session->attached.size() >= data_.limits.max_leases_per_session) {
    return refusal::TooManyLeases(data_.limits.max_leases_per_session);
  }
  data_.tickets.Remove(id);
  Holder holder = {session_id, facts.uid, facts.pid, facts.name, ticket->access, facts.read_only_advisory};
  if (std::find(lease->ever.begin(), lease->ever.end(), facts.uid) == lease->ever.end()) {
    lease->ever.push_back(facts.uid);
  }
  lease->shares.push_back(holder);
  session->attached.insert(lease->id);
  data_.Emit(EventKind::kAttached, *lease, holder, AccessText(holder.access));
  return life_.Describe(*lease, holder);
}

}  // namespace ubd
