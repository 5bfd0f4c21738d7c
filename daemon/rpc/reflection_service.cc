#include "daemon/rpc/reflection_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/reflection_answers.h"
#include "daemon/rpc/status.h"

namespace ubd {
namespace {

using grpc::reflection::v1alpha::ServerReflection;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr uint32_t kStreamsPerUid = 16;

// One stream: read a question, write its answer, and so on until the caller has no more.
class ReflectionCall : public Call {
 public:
  static void Listen(RpcContext& context, ServerReflection::AsyncService& service) {
    context.calls.Request([&] {
      auto call = std::make_shared<ReflectionCall>(context, service);
      call->server_context_.AsyncNotifyWhenDone(call->Arm(Op::kDone));
      service.RequestServerReflectionInfo(&call->server_context_, &call->stream_, context.queue, context.queue,
                                          call->Arm(Op::kArrived));
    });
  }

  ReflectionCall(RpcContext& context, ServerReflection::AsyncService& service)
      : context_(context), service_(service), stream_(&server_context_) {}

  // The caller is most likely idle, with a read outstanding that only it could end.
  void EndStream(const absl::Status&) override { server_context_.TryCancel(); }

 protected:
  void OnOp(Op op, bool ok) override ABSL_LOCKS_EXCLUDED(mu_) {
    if (op == Op::kArrived) return OnArrived(ok);
    {
      ub::MutexLock lock(&mu_);
      op == Op::kDone ? done_ = true : busy_ = false;
      if (op == Op::kRead) ok ? Answer() : Finish(absl::OkStatus());
      if (op == Op::kWrite && ok) Read();
    }
    CloseIfOver();
  }

 private:
  // The queue's other thread may have kDone at the same time: the call does not close before it has entered.
  void OnArrived(bool ok) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!ok) return Disarm(Op::kDone);  // the server is going down: kDone will not come
    bool ending = context_.calls.Opened(this).has_value();
    Listen(context_, service_);
    absl::StatusOr<Admission> admission = context_.Admit(server_context_);
    {
      ub::MutexLock lock(&mu_);
      Enter(std::move(admission), ending);
      entered_ = true;
    }
    CloseIfOver();
  }

  void CloseIfOver() ABSL_LOCKS_EXCLUDED(mu_) {
    {
      ub::MutexLock lock(&mu_);
      if (!entered_ || !done_ || busy_ || std::exchange(closed_, true)) return;
    }
    place_ = nullptr;
    admission_ = {};
    context_.calls.Closed(this);
  }

  void Enter(absl::StatusOr<Admission> admission, bool ending) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!admission.ok()) return Finish(admission.status());
    admission_ = *std::move(admission);
    place_ = context_.limits.Take(absl::StrCat("reflection uid ", admission_.peer.uid.value()), kStreamsPerUid);
    if (place_ == nullptr) return Finish(TooManyCalls(kStreamsPerUid));
    if (ending) server_context_.TryCancel();
    Read();
  }

  // Each starts the one operation that may be outstanding; after kDone nothing may be started.
  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (Begin()) stream_.Read(&request_, Arm(Op::kRead));
  }
  void Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (Begin()) stream_.Write(AnswerReflection(request_), Arm(Op::kWrite));
  }
  void Finish(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (Begin()) stream_.Finish(ToGrpcStatus(status), Arm(Op::kFinish));
  }
  bool Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (done_) return false;
    busy_ = true;
    return true;
  }

  RpcContext& context_;
  ServerReflection::AsyncService& service_;
  grpc::ServerContext server_context_;
  grpc::ServerAsyncReaderWriter<ServerReflectionResponse, ServerReflectionRequest> stream_;
  ServerReflectionRequest request_;
  Admission admission_;
  CallLimiter::Place place_;
  ub::Mutex mu_;
  bool entered_ ABSL_GUARDED_BY(mu_) = false;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

void ReflectionService::Listen() { ReflectionCall::Listen(context_, service_); }

}  // namespace ubd
