// A server stream: one request, then messages pulled from a source as fast as the caller reads them. One write is
// outstanding at a time, so a slow reader costs one message; whatever waits meanwhile waits in the source, which bounds
// it. See call.h for lifetimes.
#ifndef UBD_RPC_STREAM_CALL_H_
#define UBD_RPC_STREAM_CALL_H_

#include <grpcpp/alarm.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "daemon/rpc/call.h"
#include "daemon/rpc/context.h"
#include "daemon/rpc/status.h"

namespace ubd {

template <class Req, class Msg>
class StreamCall : public Call {
 public:
  using Ptr = std::shared_ptr<StreamCall>;
  // Where messages come from. Called by one thread at a time, with no lock held.
  class Source {
   public:
    virtual ~Source() = default;
    // The next message; none: Poke will be called when there may be one.
    virtual std::optional<Msg> Next() = 0;
    // Asked when Next has none: the status to end the stream with, if it is over.
    virtual std::optional<absl::Status> End() { return std::nullopt; }
  };
  // One method of one service; lives as long as the server.
  struct Method {
    RpcContext* context;
    std::function<void(grpc::ServerContext*, Req*, grpc::ServerAsyncWriter<Msg>*, void* tag)> request;
    // Must lead to one Start or EndStream.
    std::function<void(Ptr)> handle;
  };

  static void Listen(std::shared_ptr<const Method> method) {
    RpcContext* context = method->context;
    context->calls.Request([&] {
      auto call = std::make_shared<StreamCall>(std::move(method));
      call->server_context_.AsyncNotifyWhenDone(call->Arm(Op::kDone));
      call->method_->request(&call->server_context_, &call->request_, &call->writer_, call->Arm(Op::kArrived));
    });
  }

  explicit StreamCall(std::shared_ptr<const Method> method) : method_(std::move(method)), writer_(&server_context_) {}

  const Req& request() const { return request_; }
  const grpc::ServerContext& server_context() const { return server_context_; }
  const RpcPeer& peer() const { return admission_.peer; }
  RpcContext& context() const { return *method_->context; }

  // Only from the method's handler.
  void Start(std::unique_ptr<Source> source) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      ub::MutexLock lock(&mu_);
      source_ = std::move(source);
    }
    Pump();
  }

  // There may be a message, or an end. From any thread and under any lock: the work is handed to the queue's threads.
  void Poke() ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    if (done_ || finish_started_ || poke_out_) return;
    poke_out_ = true;
    ++outstanding_;
    alarm_.emplace();
    // Long past, so that it fires at once: "now" would become a timer, and gRPC's timer thread waits on the wall clock.
    alarm_->Set(method_->context->queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), Arm(Op::kPoke));
  }

  // What waits in the source is written first.
  void EndStream(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mu_) {
    {
      ub::MutexLock lock(&mu_);
      if (!ending_) ending_ = status;
    }
    Poke();
  }

 protected:
  void OnOp(Op op, bool ok) override ABSL_LOCKS_EXCLUDED(mu_) {
    if (op == Op::kArrived) return OnArrived(ok);
    bool broken = false;
    {
      ub::MutexLock lock(&mu_);
      if (op == Op::kDone) {
        done_ = true;
      } else {
        --outstanding_;
      }
      if (op == Op::kPoke) poke_out_ = false;
      if (op == Op::kWrite) {
        writing_ = false;
        broken = !ok;  // the caller has gone: kDone says the rest
      }
    }
    if (!broken) Pump();
    CloseIfOver();
  }

 private:
  // The queue's other thread may have kDone at the same time: the call does not close before it has entered.
  void OnArrived(bool ok) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!ok) return Disarm(Op::kDone);  // the server is going down: kDone will not come
    std::optional<absl::Status> ending = method_->context->calls.Opened(this);
    Listen(method_);
    Enter(ending);
    {
      ub::MutexLock lock(&mu_);
      entered_ = true;
    }
    CloseIfOver();
  }

  void Enter(const std::optional<absl::Status>& ending) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::StatusOr<Admission> admission = method_->context->Admit(server_context_);
    if (ending || !admission.ok()) return EndStream(ending ? *ending : admission.status());
    admission_ = *std::move(admission);
    method_->handle(std::static_pointer_cast<StreamCall>(shared_from_this()));
  }

  // Writes the next message or ends the stream, if it is time. The source is asked without the lock, by one thread at a
  // time.
  void Pump() ABSL_LOCKS_EXCLUDED(mu_) {
    if (!BeginPump()) return;
    do {
      std::optional<Msg> message;
      std::optional<absl::Status> end;
      if (pumped_ != nullptr) {
        message = pumped_->Next();
        if (!message) end = pumped_->End();
      }
      Send(message, end);
    } while (!EndPump());
  }

  bool BeginPump() ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    if (pumping_) {
      again_ = true;
      return false;
    }
    if (!MaySend()) return false;
    pumping_ = true;
    pumped_ = source_.get();
    return true;
  }

  void Send(const std::optional<Msg>& message, std::optional<absl::Status> end) ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    if (!MaySend()) return;
    if (!end) end = ending_;
    if (message) {
      writing_ = true;
      ++outstanding_;
      writer_.Write(*message, Arm(Op::kWrite));
    } else if (end) {
      finish_started_ = true;
      ++outstanding_;
      writer_.Finish(ToGrpcStatus(*end), Arm(Op::kFinish));
    }
  }

  // False: something happened meanwhile, pump once more.
  bool EndPump() ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    bool once_more = std::exchange(again_, false) && MaySend();
    if (!once_more) pumping_ = false;
    return !once_more;
  }

  bool MaySend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !done_ && !writing_ && !finish_started_; }

  void CloseIfOver() ABSL_LOCKS_EXCLUDED(mu_) {
    std::unique_ptr<Source> source;  // destroyed without the lock: it may wait for a Poke that is under way
    {
      ub::MutexLock lock(&mu_);
      if (!entered_ || !done_ || outstanding_ != 0 || pumping_ || closed_) return;
      closed_ = true;
      source = std::move(source_);
    }
    source = nullptr;
    admission_ = {};
    method_->context->calls.Closed(this);
  }

  std::shared_ptr<const Method> method_;
  grpc::ServerContext server_context_;
  Req request_;
  grpc::ServerAsyncWriter<Msg> writer_;
  Admission admission_;
  Source* pumped_ = nullptr;  // used only by the thread that pumps

  ub::Mutex mu_;
  std::unique_ptr<Source> source_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> ending_ ABSL_GUARDED_BY(mu_);
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);
  int outstanding_ ABSL_GUARDED_BY(mu_) = 0;  // writes, finish and pokes given to gRPC
  bool poke_out_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool finish_started_ ABSL_GUARDED_BY(mu_) = false;
  bool entered_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  bool pumping_ ABSL_GUARDED_BY(mu_) = false;
  bool again_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// Serves one streaming method of a generated AsyncService. `request` is its RequestNAME.
template <class Service, class Base, class Req, class Msg>
void ServeStream(RpcContext& context, Service& service,
                 void (Base::*request)(grpc::ServerContext*, Req*, grpc::ServerAsyncWriter<Msg>*,
                                       grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
                 std::type_identity_t<std::function<void(std::shared_ptr<StreamCall<Req, Msg>>)>> handle) {
  using C = StreamCall<Req, Msg>;
  auto ask = [&context, &service, request](grpc::ServerContext* call, Req* message,
                                           grpc::ServerAsyncWriter<Msg>* writer, void* tag) {
    (service.*request)(call, message, writer, context.queue, context.queue, tag);
  };
  C::Listen(
      std::make_shared<const typename C::Method>(typename C::Method{&context, std::move(ask), std::move(handle)}));
}

}  // namespace ubd

#endif  // UBD_RPC_STREAM_CALL_H_
