#include "daemon/rpc/broker_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/translate.h"
#include "daemon/rpc/validators.h"
#include "daemon/rpc/watch.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// A client needs one; a few more let a new one start before the old one has ended.
constexpr uint32_t kWatchesPerSession = 4;

absl::Status SessionEnded() {
  return ub::MakeError(absl::StatusCode::kAborted, ub::Reason::kSessionEnded,
                       "the session has ended, its leases with it: connect anew");
}

}  // namespace

BrokerService::BrokerService(RpcContext& context) : context_(context), data_(context) {
  for (const PoolFacts& facts : context.deps.memory.Facts()) pools_.push_back({facts.spec.name, facts.page_size});
}

void BrokerService::Listen() {
  using S = ub::v1::Broker::AsyncService;
  ServeUnary(context_, service_, &S::RequestAcquire, "Broker.Acquire", [this](auto call) { Acquire(call); });
  ServeUnary(context_, service_, &S::RequestRelease, "Broker.Release", [this](auto call) { Release(call); });
  ServeUnary(context_, service_, &S::RequestShare, "Broker.Share", [this](auto call) { Share(call); });
  ServeUnary(context_, service_, &S::RequestAttach, "Broker.Attach", [this](auto call) { Attach(call); });
  ServeUnary(context_, service_, &S::RequestPing, "Broker.Ping", [this](auto call) { Ping(call); });
  data_.Listen(service_);
  ServeStream(context_, service_, &S::RequestWatch, [this](auto call) { Watch(call); });
}

ub::v1::Lease BrokerService::LeaseOf(const Grant& grant) const {
  // A pool that the memory layer does not list cannot have granted anything.
  static const PoolFact kUnknown;
  const PoolFact& pool = grant.pool.value() < pools_.size() ? pools_[grant.pool.value()] : kUnknown;
  return ToProto(grant, pool.name, pool.page_size, context_.deps.clock.Now());
}

template <class Call>
void BrokerService::Deliver(const Call& call, const std::shared_ptr<Session>& session, const Grant& grant) {
  absl::StatusOr<LeasePin> pin = context_.deps.broker.Pin(session->facts().id, grant.lease, grant.access);
  if (!pin.ok()) return call->Fail(pin.status());  // the lease has ended meanwhile
  session->Deliver(grant, *std::move(pin), [this, call, grant](absl::Status sent) {
    if (!sent.ok()) return call->Fail(sent);
    auto reply = typename Call::element_type::ReplyMessage();
    *reply.mutable_lease() = LeaseOf(grant);
    call->Reply(reply);
  });
}

void BrokerService::Acquire(const AcquireCall& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  SessionId id = (*session)->facts().id;
  absl::StatusOr<AcquireRequest> request = CheckAcquire(call->request(), id);
  if (!request.ok()) return call->Fail(request.status());
  Broker& broker = context_.deps.broker;
  ClaimId claim = broker.Acquire(*request, [this, call, session = *session](absl::StatusOr<Grant> grant) {
    grant.ok() ? Deliver(call, session, *grant) : call->Fail(grant.status());
  });
  // Set only now, but nothing is missed: a caller that has gone meanwhile is told of at once.
  call->OnLost([&broker, id, request_id = request->request, claim] { broker.Abandon(id, request_id, claim); });
}

void BrokerService::Release(const CallPtr<ub::v1::ReleaseRequest, ub::v1::ReleaseResponse>& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<ReleaseTarget> target = CheckRelease(call->request());
  if (!target.ok()) return call->Fail(target.status());
  SessionId id = (*session)->facts().id;
  if (const LeaseId* lease = std::get_if<LeaseId>(&*target)) {
    absl::Status released = context_.deps.broker.Release(id, *lease);
    return released.ok() ? call->Reply({}) : call->Fail(released);
  }
  // A request that never came, or came to nothing, leaves nothing to give back: that is what the caller wants.
  context_.deps.broker.Abandon(id, std::get<RequestId>(*target));
  call->Reply({});
}

void BrokerService::Share(const CallPtr<ub::v1::ShareRequest, ub::v1::ShareResponse>& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<ShareRequest> request = CheckShare(call->request(), (*session)->facts().id);
  if (!request.ok()) return call->Fail(request.status());
  absl::StatusOr<Ticket> ticket = context_.deps.broker.Share(*request);
  if (!ticket.ok()) return call->Fail(ticket.status());
  ub::v1::ShareResponse reply;
  reply.set_ticket(ticket->id.data(), ticket->id.size());
  reply.set_expires_in_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(ticket->expires_in)));
  reply.set_read_only_advisory(request->access == Access::kReadOnly && ReadOnlyIsAdvisory(request->uid));
  call->Reply(reply);
}

void BrokerService::Attach(const AttachCall& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<TicketId> ticket = CheckAttach(call->request());
  if (!ticket.ok()) return call->Fail(ticket.status());
  Broker& broker = context_.deps.broker;
  SessionId id = (*session)->facts().id;
  absl::StatusOr<Grant> grant = broker.Attach(id, *ticket);
  if (!grant.ok()) return call->Fail(grant.status());
  Deliver(call, *session, *grant);
  // The ticket is used up, so nobody can ask again: this holder's part ends.
  call->OnLost([&broker, id, lease = grant->lease] { broker.FailDelivery(id, lease); });
}

void BrokerService::Ping(const CallPtr<ub::v1::PingRequest, ub::v1::PingResponse>& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  session.ok() ? call->Reply({}) : call->Fail(session.status());
}

void BrokerService::Watch(const std::shared_ptr<StreamCall<ub::v1::WatchRequest, ub::v1::Event>>& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->EndStream(session.status());
  SessionId id = (*session)->facts().id;
  auto ended = std::make_shared<std::atomic<bool>>(false);
  auto mine = [id, ended](const Event& event) {
    if (event.session != id) return ConcernsAll(event.kind);
    if (event.kind == EventKind::kSessionClosed) ended->store(true);
    return true;
  };
  // The registry covers a session that ended before the watch was in place.
  auto over = [this, id, ended]() -> std::optional<absl::Status> {
    if (!ended->load() && context_.sessions.load()->Find(id) != nullptr) return std::nullopt;
    return SessionEnded();
  };
  StartWatch(call, mine, {absl::StrCat("session ", id.value()), kWatchesPerSession}, over);
}

}  // namespace ubd
