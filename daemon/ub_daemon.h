// The daemon's parts and how they are wired; see daemon.h. daemon.cc boots it, daemon_run.cc runs, reloads and ends it.
#ifndef UBD_UB_DAEMON_H_
#define UBD_UB_DAEMON_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "daemon/core/broker.h"
#include "daemon/daemon.h"
#include "daemon/engine/engine.h"
#include "daemon/listeners.h"
#include "daemon/memory/memory.h"
#include "daemon/rpc/admin_rule.h"
#include "daemon/rpc/server.h"
#include "daemon/session/server.h"
#include "daemon/session/sockets.h"
#include "daemon/telemetry/event_hub.h"
#include "daemon/telemetry/metrics.h"
#include "daemon/watchdog.h"

namespace ubd {

class UbDaemon : public Daemon {
 public:
  UbDaemon(DaemonOptions options, Config config)
      : options_(std::move(options)), config_(std::move(config)), started_(absl::Now()), started_mono_(clock_.Now()) {}
  ~UbDaemon() override;

  absl::Status Boot();
  void Run() override;

 private:
  absl::Status MakeMemory();
  absl::Status MakeEngine();
  absl::Status MakeServices(const AdminRule& admin);
  absl::Status OpenSockets();
  void StartWatchdog();
  void ScheduleWatchdog(absl::Duration period);
  std::string Summary() const;
  void OnSignals();
  void Reload();
  void ApplyPaths(const EngineOptions& before);
  void BeginStop(const std::string& why);
  // Nothing of the engine or of the RPCs' work goes on; else the process ends here.
  void EndWork();

  DaemonOptions options_;
  Config config_;
  SystemClock clock_;
  absl::Time started_;
  MonoTime started_mono_;

  std::unique_ptr<Doorman> doorman_;  // until the session server has it
  std::unique_ptr<RuntimeDirLock> lock_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Engine> engine_;  // memory that is taken from it (Memory::Stop) needs it still
  std::unique_ptr<LeasePages> pages_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<RpcServer> rpc_;
  Listeners listeners_;
  std::unique_ptr<SessionServer> sessions_;
  std::atomic<SessionRegistry*> registry_ = nullptr;  // for metrics, which may be asked before there are sessions
  std::unique_ptr<Watchdog> watchdog_;
  ub::UniqueFd signals_;
  // End the RPCs and the transfers while the event loop still runs.
  std::thread stopper_;
  std::thread engine_stopper_;
  uint64_t stuck_transfers_ = 0;  // after engine_stopper_
  bool stopping_ = false;
};

SessionLimits SessionLimitsOf(const Config& config);

}  // namespace ubd

#endif  // UBD_UB_DAEMON_H_
