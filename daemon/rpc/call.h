// One RPC in progress, as the completion queue sees it: what unary_call.h and stream_call.h share.
//
// Lifetime: every operation given to gRPC holds a reference to its call until the queue hands the operation's tag back,
// which it does exactly once, at shutdown too. So a call is freed once, after its last tag, whatever order they come
// in. The one tag that gRPC may keep for ever, kDone of a call that never arrived, is dropped by hand.
//
// A call is open from its arrival until kDone and every operation that it started are back; an operation is only ever
// started on an open call, and CallTable waits for the last open one before the queue is shut down.
#ifndef UBD_RPC_CALL_H_
#define UBD_RPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "daemon/core/clock.h"
#include "proto/wire/mutex.h"

namespace ubd {

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  // Runs what the completion queue returned.
  static void Dispatch(void* tag, bool ok);
  // The server is going down: streams end with `status` once what waits for them is written; unary calls go on.
  virtual void EndStream(const absl::Status& status) = 0;

 protected:
  enum class Op : uint8_t { kArrived, kDone, kRead, kWrite, kFinish, kPoke };
  virtual void OnOp(Op op, bool ok) = 0;
  // The tag for an operation about to be started; the call lives at least until it comes back.
  void* Arm(Op op) ABSL_LOCKS_EXCLUDED(tags_mu_);
  void Disarm(Op op) ABSL_LOCKS_EXCLUDED(tags_mu_);

 private:
  struct Tag {
    Call* call = nullptr;
    Op op = Op::kArrived;
    std::shared_ptr<Call> keep;
  };
  ub::Mutex tags_mu_;  // orders Arm before Dispatch for the eyes of ThreadSanitizer; gRPC's own queue does in truth
  std::array<Tag, 6> tags_;
};

// The calls of one server that are open. Thread-safe.
class CallTable {
 public:
  // Runs `request`, which asks gRPC for one more call, unless Close was called.
  void Request(const std::function<void()>& request) ABSL_LOCKS_EXCLUDED(mu_);
  // An arrived call. Returns the status to end streams with at once, when EndStreams was called.
  std::optional<absl::Status> Opened(Call* call) ABSL_LOCKS_EXCLUDED(mu_);
  void Closed(Call* call) ABSL_LOCKS_EXCLUDED(mu_);
  void EndStreams(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Until no call is open, but not longer.
  void WaitUntilNone(absl::Duration most) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops requests, and waits until no call is open.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool CalmAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  ub::Mutex mu_;
  ub::CondVar changed_;
  std::set<Call*> open_ ABSL_GUARDED_BY(mu_);
  size_t most_ ABSL_GUARDED_BY(mu_) = 0;  // open at once since memory was last given back
  MonoTime trim_again_ ABSL_GUARDED_BY(mu_) = MonoTime::Never();
  std::optional<absl::Status> ending_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace ubd

#endif  // UBD_RPC_CALL_H_
