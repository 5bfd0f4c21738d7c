// Serving, reloading, and the orderly end.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/service/notify.h"
#include "daemon/signals.h"
#include "daemon/telemetry/log.h"
#include "daemon/ub_daemon.h"

namespace ubd {
namespace {

// What an engine with nothing in flight may take to end.
constexpr absl::Duration kIdleGrace = absl::Seconds(2);

}  // namespace

void UbDaemon::Run() { sessions_->Run(); }

void UbDaemon::OnSignals() {
  while (int signal = ReadSignal(signals_.get())) {
    if (signal == SIGHUP) {
      Reload();
    } else {
      BeginStop(signal == SIGTERM ? "it was asked to (SIGTERM)" : "it was interrupted (SIGINT)");
    }
  }
}

void UbDaemon::Reload() {
  if (stopping_) return;
  NotifyReloading();
  absl::StatusOr<Config> wanted = ReadConfig(options_.config_path);
  if (wanted.ok()) {
    ReloadPlan plan = PlanReload(config_, *wanted);
    const EngineOptions before = config_.engine;
    config_ = plan.merged;
    ApplyPaths(before);
    broker_->SetLimits(config_.limits);
    SetLogLevel(config_.log_level);
    sessions_->SetLimits(SessionLimitsOf(config_));
    LogInfo("configuration reloaded", {{"changed", absl::StrJoin(plan.changed, ", ")},
                                       {"needs_restart", absl::StrJoin(plan.needs_restart, ", ")}});
  } else {
    LogError("configuration not reloaded, the old one stays in force",
             {{"faults", std::string(wanted.status().message())}});
  }
  NotifyReady(Summary());
}

// What an operator has set meanwhile (`ubctl path set`) stays, unless the file says something new.
void UbDaemon::ApplyPaths(const EngineOptions& before) {
  if (config_.engine.policy != before.policy) engine_->SetPolicy(config_.engine.policy);
  engine_->SetMinDirect(config_.engine.min_direct_storage, config_.engine.min_direct_network);
}

void UbDaemon::BeginStop(const std::string& why) {
  if (std::exchange(stopping_, true)) return;
  LogInfo("stopping", {{"why", why}});
  NotifyStopping("stopping");
  rpc_->SetServing(false);
  broker_->Stop(why);
  stopper_ = std::thread([this, why] { rpc_->Shutdown(why, config_.shutdown_grace); });
  engine_stopper_ =
      std::thread([this] { stuck_transfers_ = engine_->Stop(std::max(config_.shutdown_grace, kIdleGrace)); });
  sessions_->Stop(config_.shutdown_grace);
  // The loop has closed its own copies: with these gone newcomers are refused at once instead of waiting in the
  // backlog.
  listeners_ = {};
}

// A device or a file system that does not answer holds up its own transfers, never the end of the daemon. What is
// still in flight works on memory that this process alone can free, so nothing is taken apart any more.
void UbDaemon::EndWork() {
  if (stopper_.joinable()) stopper_.join();
  if (engine_stopper_.joinable()) {
    engine_stopper_.join();
  } else if (engine_ != nullptr) {
    stuck_transfers_ = engine_->Stop(kIdleGrace);
  }
  const bool rpc_ended = rpc_ == nullptr || rpc_->Shutdown("the daemon ends", absl::ZeroDuration());
  if (rpc_ended && stuck_transfers_ == 0) return;
  LogError("ending with work that does not end",
           {{"transfers", absl::StrCat(stuck_transfers_)}, {"opening", rpc_ended ? "" : "a file or memory"}});
  listeners_ = {};
  std::_Exit(0);
}

// From the edges inwards: first whoever calls, then whoever is called.
UbDaemon::~UbDaemon() {
  watchdog_ = nullptr;
  EndWork();
  if (memory_ != nullptr) memory_->Stop();
  metrics_ = nullptr;  // nothing but this thread calls the sink any more
  sessions_ = nullptr;
  rpc_ = nullptr;
  engine_ = nullptr;
  broker_ = nullptr;
  events_ = nullptr;
}

}  // namespace ubd
