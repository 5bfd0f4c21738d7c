// The gRPC server: Broker, Admin, Health and reflection over connections that the session server accepted. One
// completion queue, two threads, no thread per waiter; asleep while nobody calls.
//
// The caller is hostile. Everything in a request is checked here before it goes on, identity comes from the kernel
// (ConnectionTable) and the token, and no error says more than its caller may know.
#ifndef UBD_RPC_SERVER_H_
#define UBD_RPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "daemon/core/broker.h"
#include "daemon/engine/engine.h"
#include "daemon/memory/memory.h"
#include "daemon/session/server.h"
#include "daemon/telemetry/event_hub.h"
#include "daemon/telemetry/metrics.h"

namespace ubd {

// What Admin.GetStatus reports beside the Broker's figures.
struct DaemonFacts {
  std::string runtime_dir;
  std::string config_path;
  absl::Time started;
  absl::Duration boot;
  MonoTime started_mono;
};

struct RpcServerDeps {
  Broker& broker;
  Memory& memory;
  EventHub& events;
  Metrics& metrics;
  Engine& engine;
  // Known only after the session server is made; see Attach.
  std::function<bool(Uid uid, Gid gid, int32_t pid)> is_admin;
  const Clock& clock;
};

class RpcServer {
 public:
  virtual ~RpcServer() = default;
  static std::unique_ptr<RpcServer> Create(RpcServerDeps deps);
  // Where callers are looked up; before the first ServeFd.
  virtual void Attach(SessionRegistry& sessions, ConnectionTable& connections) = 0;
  virtual void SetFacts(DaemonFacts facts) = 0;
  // Takes over a connected socket.
  virtual void ServeFd(int fd) = 0;
  // Health answers NOT_SERVING until this is called with true.
  virtual void SetServing(bool serving) = 0;
  // Streams are told why, then everything still running after `grace` is cancelled. Blocks until done; a second call
  // answers as the first. False: a call's work is stuck in a file system and goes on; then what it uses (Broker,
  // Memory, Engine) must live as long as the process.
  virtual bool Shutdown(const std::string& why, absl::Duration grace) = 0;
};

}  // namespace ubd

#endif  // UBD_RPC_SERVER_H_
