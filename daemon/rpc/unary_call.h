// A unary RPC: one request, one answer, given at once or later from any thread. See call.h for lifetimes.
#ifndef UBD_RPC_UNARY_CALL_H_
#define UBD_RPC_UNARY_CALL_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "daemon/rpc/call.h"
#include "daemon/rpc/context.h"
#include "daemon/rpc/status.h"

namespace ubd {

template <class Req, class Rep>
class UnaryCall : public Call {
 public:
  using Ptr = std::shared_ptr<UnaryCall>;
  using ReplyMessage = Rep;
  // One method of one service; lives as long as the server.
  struct Method {
    RpcContext* context;
    std::string name;  // "Broker.Acquire", for metrics
    std::function<void(grpc::ServerContext*, Req*, grpc::ServerAsyncResponseWriter<Rep>*, void* tag)> request;
    // Must lead to exactly one Reply or Fail, now or later.
    std::function<void(Ptr)> handle;
  };

  // Asks gRPC for the next call of the method. Whenever one arrives, the next is asked for, so any number may be open.
  static void Listen(std::shared_ptr<const Method> method) {
    RpcContext* context = method->context;
    context->calls.Request([&] {
      auto call = std::make_shared<UnaryCall>(std::move(method));
      call->server_context_.AsyncNotifyWhenDone(call->Arm(Op::kDone));
      call->method_->request(&call->server_context_, &call->request_, &call->writer_, call->Arm(Op::kArrived));
    });
  }

  explicit UnaryCall(std::shared_ptr<const Method> method) : method_(std::move(method)), writer_(&server_context_) {}

  const Req& request() const { return request_; }
  const grpc::ServerContext& server_context() const { return server_context_; }
  const RpcPeer& peer() const { return admission_.peer; }
  RpcContext& context() const { return *method_->context; }

  void Reply(const Rep& reply) { Finish(absl::OkStatus(), &reply); }
  void Fail(const absl::Status& status) { Finish(status, nullptr); }
  // Both at once.
  void Answer(const absl::StatusOr<Rep>& answer) { answer.ok() ? Reply(*answer) : Fail(answer.status()); }

  // `lost` runs once if the caller goes (cancels, dies, runs into its deadline) before the answer is in its hands; at
  // once if it has. Not more than one per call.
  void OnLost(std::function<void()> lost) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      ub::MutexLock lock(&mu_);
      if (!closed_) {
        lost_ = std::move(lost);
        return;
      }
      if (!was_lost_) return;
    }
    lost();
  }

  // Held until the answer is in the caller's hands, or the caller has gone.
  void Hold(std::shared_ptr<void> place) ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    place_ = std::move(place);
  }

  void EndStream(const absl::Status&) override {}

 protected:
  void OnOp(Op op, bool ok) override { op == Op::kArrived ? OnArrived(ok) : OnLastTags(op, ok); }

 private:
  // The queue's other thread may have kDone at the same time: the call does not close before it has entered.
  void OnArrived(bool ok) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!ok) return Disarm(Op::kDone);  // the server is going down: kDone will not come
    method_->context->calls.Opened(this);
    Listen(method_);
    Enter();
    {
      ub::MutexLock lock(&mu_);
      entered_ = true;
    }
    CloseIfOver();
  }

  void Enter() ABSL_LOCKS_EXCLUDED(mu_) {
    arrived_ = method_->context->deps.clock.Now();
    absl::StatusOr<Admission> admission = method_->context->Admit(server_context_);
    if (!admission.ok()) return Fail(admission.status());
    admission_ = *std::move(admission);
    method_->handle(std::static_pointer_cast<UnaryCall>(shared_from_this()));
  }

  void Finish(const absl::Status& status, const Rep* reply) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      ub::MutexLock lock(&mu_);
      // After kDone without an answer the caller has gone, and nothing may be started any more.
      if (finish_started_ || done_) return;
      finish_started_ = true;
      if (status.ok()) {
        writer_.Finish(*reply, grpc::Status::OK, Arm(Op::kFinish));
      } else {
        writer_.FinishWithError(ToGrpcStatus(status), Arm(Op::kFinish));
      }
    }
    Observe(absl::StatusCodeToString(status.code()));
  }

  // kDone and kFinish, in any order; after both (or kDone of an unanswered call) the call closes.
  void OnLastTags(Op op, bool ok) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      ub::MutexLock lock(&mu_);
      if (op == Op::kDone) {
        done_ = true;
      } else {
        finish_returned_ = true;
        finish_ok_ = ok;
      }
    }
    CloseIfOver();
  }

  void CloseIfOver() ABSL_LOCKS_EXCLUDED(mu_) {
    std::function<void()> lost;
    std::shared_ptr<void> place;
    bool unanswered = false;
    bool was_lost = false;
    {
      ub::MutexLock lock(&mu_);
      if (!entered_ || !done_ || closed_ || (finish_started_ && !finish_returned_)) return;
      closed_ = true;
      unanswered = !finish_started_;
      was_lost = was_lost_ = unanswered || !finish_ok_ || server_context_.IsCancelled();
      lost = std::exchange(lost_, nullptr);
      place = std::exchange(place_, nullptr);
    }
    if (unanswered) Observe("CANCELLED");
    if (was_lost && lost) lost();
    lost = nullptr;
    place = nullptr;
    admission_ = {};
    method_->context->calls.Closed(this);
  }

  void Observe(const std::string& code) {
    method_->context->deps.metrics.ObserveRpc(method_->name, code, method_->context->deps.clock.Now() - arrived_);
  }

  std::shared_ptr<const Method> method_;
  grpc::ServerContext server_context_;
  Req request_;
  grpc::ServerAsyncResponseWriter<Rep> writer_;
  Admission admission_;
  MonoTime arrived_;

  ub::Mutex mu_;
  bool entered_ ABSL_GUARDED_BY(mu_) = false;
  bool finish_started_ ABSL_GUARDED_BY(mu_) = false;
  bool finish_returned_ ABSL_GUARDED_BY(mu_) = false;
  bool finish_ok_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool was_lost_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> lost_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<void> place_ ABSL_GUARDED_BY(mu_);
};

// Serves one method of a generated AsyncService. `request` is its RequestNAME.
template <class Service, class Base, class Req, class Rep>
void ServeUnary(RpcContext& context, Service& service,
                void (Base::*request)(grpc::ServerContext*, Req*, grpc::ServerAsyncResponseWriter<Rep>*,
                                      grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
                std::string name,
                std::type_identity_t<std::function<void(std::shared_ptr<UnaryCall<Req, Rep>>)>> handle) {
  using C = UnaryCall<Req, Rep>;
  auto ask = [&context, &service, request](grpc::ServerContext* call, Req* message,
                                           grpc::ServerAsyncResponseWriter<Rep>* writer, void* tag) {
    (service.*request)(call, message, writer, context.queue, context.queue, tag);
  };
  C::Listen(std::make_shared<const typename C::Method>(
      typename C::Method{&context, std::move(name), std::move(ask), std::move(handle)}));
}

}  // namespace ubd

#endif  // UBD_RPC_UNARY_CALL_H_
