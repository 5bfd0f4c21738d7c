// What all services share: the server's dependencies, the table of open calls, and who is calling.
//
// The caller is hostile. Who it is comes from the kernel (the connection's credentials, looked up by gRPC's peer
// string) and from the session's secret token, never from anything else it says.
#ifndef UBD_RPC_CONTEXT_H_
#define UBD_RPC_CONTEXT_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/server.h"
#include "proto/wire/mutex.h"

namespace ubd {

// Counts, per caller, calls that hold memory for as long as the caller likes: streams with a queue of events, long
// answers that are not read. Thread-safe.
class CallLimiter {
 public:
  // One call's place; given back when destroyed.
  using Place = std::shared_ptr<void>;
  // Null: `key` has `limit` of them already. The limiter must outlive the place.
  Place Take(const std::string& key, uint32_t limit);

 private:
  ub::Mutex mu_;
  std::map<std::string, uint32_t> taken_ ABSL_GUARDED_BY(mu_);
};

// RESOURCE_EXHAUSTED/TOO_MANY_WAITERS.
absl::Status TooManyCalls(uint32_t limit);
// Whether the kernel cannot hold `uid` to a read-only share: root, and the daemon's own uid.
bool ReadOnlyIsAdvisory(Uid uid);

struct Admission {
  RpcPeer peer;
  CallLimiter::Place of_connection;
  CallLimiter::Place of_uid;
};

struct RpcContext {
  explicit RpcContext(RpcServerDeps given) : deps(std::move(given)) {}

  RpcServerDeps deps;
  grpc::ServerCompletionQueue* queue = nullptr;  // set before the first call
  CallTable calls;
  CallLimiter limits;
  std::atomic<SessionRegistry*> sessions = nullptr;
  std::atomic<ConnectionTable*> connections = nullptr;

  // Who is calling, and the call's places among those of its connection and its user: to be kept until the call closes.
  // UNAUTHENTICATED when the call did not come over a connection that the session server accepted. RESOURCE_EXHAUSTED
  // when there are far more open calls than any honest client has (it ignores the limit on streams, or does not read):
  // then the connection is dropped.
  absl::StatusOr<Admission> Admit(const grpc::ServerContext& call);
  // The session that the call's token names. UNAUTHENTICATED/NO_SESSION: missing, unknown, ended, or of another uid,
  // not told apart.
  absl::StatusOr<std::shared_ptr<Session>> FindSession(const grpc::ServerContext& call, const RpcPeer& peer) const;
  Viewer ViewerOf(const RpcPeer& peer) const;
};

}  // namespace ubd

#endif  // UBD_RPC_CONTEXT_H_
