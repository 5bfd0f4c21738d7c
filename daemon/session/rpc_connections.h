// The accepted connections of ubd.sock: who is behind each, by the number of the descriptor that gRPC serves ("fd:N"),
// as the kernel said it at accept. Numbers come cyclically from a reserved range, so that a late call of an old
// connection does not find a new one of the same number. A second descriptor of each connection stays here, to notice
// the hang-up and to shut down those that never speak. Lookup and Drop from any thread, all else on the loop's.
#ifndef UBD_SESSION_RPC_CONNECTIONS_H_
#define UBD_SESSION_RPC_CONNECTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/session/event_loop.h"
#include "daemon/session/server.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class RpcConnections : public ConnectionTable {
 public:
  RpcConnections(EventLoop& loop, std::function<void(int)> serve) : loop_(loop), serve_(std::move(serve)) {}
  ~RpcConnections() override;

  std::optional<RpcPeer> Lookup(std::string_view grpc_peer) override;
  void Drop(std::string_view grpc_peer) override ABSL_LOCKS_EXCLUDED(mu_);

  // Takes a connection in, or closes it: over the uid's limit, or no number free.
  void Accept(ub::UniqueFd connection, uint32_t most_per_uid, absl::Duration silence);

 private:
  struct Connection {
    RpcPeer peer;
    ub::UniqueFd own;
    EventLoop::WatchId watch = 0;
    EventLoop::TimerId timer = 0;
    absl::Duration silence;
    MonoTime silent_until;
    int chances = 0;
    std::atomic<bool> spoke{false};
  };

  ub::UniqueFd NumberFor(int connection);
  void ExpectWords(int number, Connection& connection);
  void OnSilence(int number);
  // Calls of anybody are coming in right now: then the first call of this one may be waiting its turn.
  bool Busy() const;
  void End(int number);

  EventLoop& loop_;
  const std::function<void(int)> serve_;
  int next_number_ = 0;
  absl::flat_hash_map<Uid, uint32_t> of_uid_;
  std::atomic<int64_t> last_call_ns_{0};

  ub::Mutex mu_;
  absl::flat_hash_map<int, std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_SESSION_RPC_CONNECTIONS_H_
