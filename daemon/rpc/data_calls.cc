#include "daemon/rpc/data_calls.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/rpc/translate.h"
#include "daemon/rpc/translate_data.h"
#include "daemon/rpc/validators.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

// The frame was sent before the call, so it is in the socket; this is for a daemon whose loop is busy.
constexpr absl::Duration kOfferPatience = absl::Seconds(5);

absl::Status TooBusy() {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyWaiters,
                       absl::StrCat("too many files and ranges of memory wait to be opened, at most ",
                                    FileWorkers::kMostPerUid, " of one user: wait for the answers, then go on"),
                       {{"limit", absl::StrCat(FileWorkers::kMostPerUid)}});
}

ub::wire::QueueGrant FrameOf(const OpenedQueue& queue) {
  auto frame = ub::wire::NewFrame<ub::wire::QueueGrant>();
  frame.queue = queue.id;
  frame.sq_entries = queue.layout.sq_entries;
  frame.cq_entries = queue.layout.cq_entries;
  return frame;
}

// A descriptor in a copyable job.
std::shared_ptr<ub::UniqueFd> Boxed(ub::UniqueFd fd) { return std::make_shared<ub::UniqueFd>(std::move(fd)); }

}  // namespace

void DataCalls::Listen(ub::v1::Broker::AsyncService& service) {
  using S = ub::v1::Broker::AsyncService;
  ServeUnary(context_, service, &S::RequestOpenQueue, "Broker.OpenQueue", [this](auto call) { OpenQueue(call); });
  ServeUnary(context_, service, &S::RequestCloseQueue, "Broker.CloseQueue", [this](auto call) { CloseQueue(call); });
  ServeUnary(context_, service, &S::RequestOpenFile, "Broker.OpenFile", [this](auto call) { OpenFile(call); });
  ServeUnary(context_, service, &S::RequestCloseFile, "Broker.CloseFile", [this](auto call) { CloseFile(call); });
  ServeUnary(context_, service, &S::RequestRegisterMemory, "Broker.RegisterMemory",
             [this](auto call) { RegisterMemory(call); });
}

void DataCalls::OpenQueue(const OpenQueueCall& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  const SessionId id = (*session)->facts().id;
  absl::StatusOr<QueueRequest> request = CheckOpenQueue(call->request(), id);
  if (!request.ok()) return call->Fail(request.status());
  Engine& engine = context_.deps.engine;
  absl::StatusOr<OpenedQueue> queue = engine.OpenQueue(*request);
  if (!queue.ok()) return call->Fail(queue.status());
  absl::Status sent = (*session)->DeliverQueue(FrameOf(*queue), std::move(queue->memory), std::move(queue->event));
  if (!sent.ok()) {
    (void)engine.CloseQueue(id, queue->id);
    return call->Fail(sent);
  }
  call->OnLost([&engine, id, number = queue->id] { (void)engine.CloseQueue(id, number); });
  call->Reply(ToProto(*queue, engine.options(), engine.Paths()));
}

void DataCalls::CloseQueue(const CallPtr<ub::v1::CloseQueueRequest, ub::v1::CloseQueueResponse>& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<uint32_t> queue = CheckCloseQueue(call->request());
  if (!queue.ok()) return call->Fail(queue.status());
  absl::Status closed = context_.deps.engine.CloseQueue((*session)->facts().id, *queue);
  closed.ok() ? call->Reply({}) : call->Fail(closed);
}

// A file that may not even enter the daemon is no error of its caller, who reads and writes it by itself.
void DataCalls::Refused(const OpenFileCall& call, const absl::Status& why) {
  std::optional<std::string> file_system = ub::DetailOf(why, "file_system");
  if (!file_system) return call->Fail(why);
  Engine::OpenedFile untrusted;
  untrusted.facts.file_system = *file_system;
  untrusted.facts.why_not = ub::wire::PathReason::kFsNotTrusted;
  call->Reply(ToProto(untrusted, context_.deps.engine.Paths().policy));
}

void DataCalls::Refused(const RegisterCall& call, const absl::Status& why) {
  if (ub::ReasonOf(why) != ub::Reason::kBadFile) return call->Fail(why);
  call->Fail(ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadMemory,
                           "what was offered is no memory: it must be a memfd (memfd_create), sealed against shrinking "
                           "and growing",
                           {{"field", "fd"}}));
}

template <class Call, class Work>
void DataCalls::WithOffer(const Call& call, Session& session, uint64_t offer, Work work) {
  const absl::Duration left = absl::FromChrono(call->server_context().deadline()) - absl::Now();
  session.TakeOffer(offer, std::clamp(left, absl::ZeroDuration(), kOfferPatience),
                    [this, call, uid = session.facts().uid, work](absl::StatusOr<ub::UniqueFd> taken) {
                      if (!taken.ok()) return Refused(call, taken.status());
                      auto job = [work, fd = Boxed(*std::move(taken))] { work(std::move(*fd)); };
                      if (!workers_.Run(uid, std::move(job))) call->Fail(TooBusy());
                    });
}

void DataCalls::OpenFile(const OpenFileCall& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<uint64_t> offer = CheckOpenFile(call->request());
  if (!offer.ok()) return call->Fail(offer.status());
  WithOffer(call, **session, *offer,
            [&engine = context_.deps.engine, call, id = (*session)->facts().id](ub::UniqueFd fd) {
              absl::StatusOr<Engine::OpenedFile> file = engine.OpenFile(id, std::move(fd));
              if (!file.ok()) return call->Fail(file.status());
              // No handle, nothing to close.
              if (file->handle != 0)
                call->OnLost([&engine, id, handle = file->handle] { (void)engine.CloseFile(id, handle); });
              call->Reply(ToProto(*file, engine.Paths().policy));
            });
}

void DataCalls::CloseFile(const CallPtr<ub::v1::CloseFileRequest, ub::v1::CloseFileResponse>& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<uint32_t> file = CheckCloseFile(call->request());
  if (!file.ok()) return call->Fail(file.status());
  absl::Status closed = context_.deps.engine.CloseFile((*session)->facts().id, *file);
  closed.ok() ? call->Reply({}) : call->Fail(closed);
}

void DataCalls::RegisterMemory(const RegisterCall& call) {
  absl::StatusOr<std::shared_ptr<Session>> session = context_.FindSession(call->server_context(), call->peer());
  if (!session.ok()) return call->Fail(session.status());
  absl::StatusOr<OwnMemory> own = CheckRegisterMemory(call->request());
  if (!own.ok()) return call->Fail(own.status());
  RpcServerDeps& deps = context_.deps;
  WithOffer(call, **session, own->offer, [&deps, call, own = *own, id = (*session)->facts().id](ub::UniqueFd fd) {
    absl::StatusOr<BlockId> block = deps.memory.AddOwn(std::move(fd), own.offset, own.bytes, own.access);
    if (!block.ok()) return call->Fail(block.status());
    absl::StatusOr<Grant> grant = deps.broker.GrantOwn(id, *block, own.bytes, own.access);
    if (!grant.ok()) {
      deps.memory.DropOwn(*block);
      return call->Fail(grant.status());
    }
    call->OnLost([&deps, id, lease = grant->lease] { (void)deps.broker.Release(id, lease); });
    ub::v1::RegisterMemoryResponse reply;
    // Page size: the client's own affair, as it made the memory.
    *reply.mutable_lease() = ToProto(*grant, kOwnPoolName, Bytes(), deps.clock.Now());
    call->Reply(reply);
  });
}

}  // namespace ubd
