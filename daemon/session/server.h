// The event loop of the daemon: one thread that accepts on both sockets, shakes hands on lifelines, notices deaths, and
// runs the Broker's deadlines. It sleeps in epoll_wait with no timeout while nothing is due. It never runs RPCs.
#ifndef UBD_SESSION_SERVER_H_
#define UBD_SESSION_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/broker.h"
#include "daemon/core/lease_words.h"
#include "daemon/session/doorman.h"
#include "daemon/session/session.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// Who is behind an RPC: looked up by gRPC's peer string ("fd:N"). The kernel's word, taken at accept.
struct RpcPeer {
  Uid uid;
  Gid gid;
  int32_t pid = 0;
};

class ConnectionTable {
 public:
  virtual ~ConnectionTable() = default;
  // None: not one of our connections; refuse. Marks the connection as one that speaks.
  virtual std::optional<RpcPeer> Lookup(std::string_view grpc_peer) = 0;
  // Hangs up on a connection that abuses the protocol. Does nothing where there is none.
  virtual void Drop(std::string_view grpc_peer) = 0;
};

struct SessionLimits {
  uint32_t max_sessions = 4096;
  uint32_t max_sessions_per_uid = 2048;
  uint32_t max_connections_per_uid = 4096;
  absl::Duration handshake_timeout = absl::Seconds(5);
};

// What else must know of sessions (the engine). Called on the loop's thread; must not wait.
struct SessionHooks {
  std::function<void(const SessionFacts&)> opened;  // the Broker knows the session already
  std::function<void(SessionId)> closing;           // the Broker still does
};

struct SessionServerDeps {
  ub::UniqueFd lifeline_listener;  // listening, non-blocking
  ub::UniqueFd rpc_listener;
  HolderFdOpener open_fd;
  // Takes over an accepted, connected RPC socket (AddInsecureChannelFromFd).
  std::function<void(int fd)> serve_rpc;
  SessionLimits limits;
  SessionHooks hooks = {};
  // Receives what sessions send. Null: this process does it by itself, and closes what comes; for tests.
  std::unique_ptr<Doorman> doorman = nullptr;
};

// The shared pages of all sessions; made before the Broker that uses it as LeaseWords. Thread-safe. The session server
// opens and closes the pages.
class LeasePages : public LeaseWords {
 public:
  static std::unique_ptr<LeasePages> Create();
  // A page for the session; returns the client's own descriptor of it. Words of a session without a page: none.
  virtual absl::StatusOr<ub::UniqueFd> OpenPage(SessionId session) = 0;
  // The daemon forgets the page. The client's mapping stays the client's.
  virtual void ClosePage(SessionId session) = 0;
  // SessionRegistry::TakeBacks. Saturates; nonsense in a counter is not added.
  virtual uint64_t TakeBacks() = 0;
};

class SessionServer {
 public:
  virtual ~SessionServer() = default;
  static absl::StatusOr<std::unique_ptr<SessionServer>> Create(SessionServerDeps deps, Broker& broker,
                                                               LeasePages& pages);

  virtual SessionRegistry& registry() = 0;
  virtual ConnectionTable& connections() = 0;

  // Runs the loop on the calling thread until Stop.
  virtual void Run() = 0;
  // From any thread or signal-safe context: closes the listeners (clients are refused only once the caller's own
  // descriptors of them are closed, too; else they wait in the backlog); Run returns after `grace` or when the last
  // session is gone.
  virtual void Stop(absl::Duration grace) = 0;

  // More things for the loop to wait for: `on_ready` runs on the loop's thread.
  virtual void WatchFd(int fd, std::function<void()> on_ready) = 0;
  // Runs `what` on the loop's thread once `delay` has passed (zero: soon). From any thread.
  virtual void RunAfter(absl::Duration delay, std::function<void()> what) = 0;
  virtual void SetLimits(const SessionLimits& limits) = 0;
};

}  // namespace ubd

#endif  // UBD_SESSION_SERVER_H_
