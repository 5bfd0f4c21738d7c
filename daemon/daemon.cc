#include "daemon/daemon.h"

#include <fcntl.h>
#include <sys/random.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/embedded.h"
#include "daemon/core/broker.h"
#include "daemon/listeners.h"
#include "daemon/memory/memory.h"
#include "daemon/quiet_engine.h"
#include "daemon/rpc/admin_rule.h"
#include "daemon/rpc/server.h"
#include "daemon/service/notify.h"
#include "daemon/session/fd_room.h"
#include "daemon/session/server.h"
#include "daemon/session/sockets.h"
#include "daemon/signals.h"
#include "daemon/telemetry/event_hub.h"
#include "daemon/telemetry/log.h"
#include "daemon/telemetry/metrics.h"
#include "daemon/watchdog.h"
#include "proto/wire/size_text.h"
#include "proto/wire/version.h"

namespace ubd {
namespace {

// Prefaulting goes at some GiB a second; a boot that still makes progress after this long has a fault that more time
// does not cure.
constexpr absl::Duration kBootCap = absl::Minutes(30);

void FillRandom(absl::Span<uint8_t> out) {
  // At most 256 bytes are never cut short and never interrupted; the Broker asks for 16.
  for (size_t done = 0; done < out.size();) {
    ssize_t got = getrandom(out.data() + done, out.size() - done, 0);
    if (got > 0) done += static_cast<size_t>(got);
  }
}

SessionLimits SessionLimitsOf(const Config& config) {
  return {config.max_sessions, config.max_sessions_per_uid, config.max_connections_per_uid, config.handshake_timeout};
}

class UbDaemon : public Daemon {
 public:
  UbDaemon(DaemonOptions options, Config config)
      : options_(std::move(options)), config_(std::move(config)), started_(absl::Now()), started_mono_(clock_.Now()) {}
  ~UbDaemon() override;

  absl::Status Boot();
  void Run() override;

 private:
  absl::Status MakeMemory();
  absl::Status MakeServices(const AdminRule& admin);
  absl::Status OpenSockets();
  void StartWatchdog();
  void ScheduleWatchdog(absl::Duration period);
  std::string Summary() const;
  void OnSignals();
  void Reload();
  void BeginStop(const std::string& why);

  DaemonOptions options_;
  Config config_;
  SystemClock clock_;
  absl::Time started_;
  MonoTime started_mono_;

  std::unique_ptr<RuntimeDirLock> lock_;
  std::unique_ptr<Memory> memory_;
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
  std::thread stopper_;  // ends the RPCs while the event loop still runs
  bool stopping_ = false;
};

absl::Status UbDaemon::Boot() {
  RaiseFdLimit();
  absl::StatusOr<std::optional<Gid>> admin_group = FindGroup(config_.admin_group);
  if (!admin_group.ok()) return admin_group.status();
  auto lock = RuntimeDirLock::Take(options_.runtime_dir);
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  {
    ExitOnSignal exit_on_signal([](int signal) {
      NotifyStopping("stopped while starting");
      LogInfo("stopped by a signal while starting", {{"signal", absl::StrCat(signal)}});
    });
    if (absl::Status made = MakeMemory(); !made.ok()) return made;
  }
  if (absl::Status made = MakeServices(AdminRule(*admin_group)); !made.ok()) return made;
  if (absl::Status opened = OpenSockets(); !opened.ok()) return opened;
  rpc_->SetFacts({options_.runtime_dir, config_.path, started_, clock_.Now() - started_mono_, started_mono_});
  StartWatchdog();
  rpc_->SetServing(true);
  LogInfo("ready", {{"version", std::string(ub::ReleaseVersion())},
                    {"runtime_dir", options_.runtime_dir},
                    {"serving", Summary()},
                    {"boot", absl::FormatDuration(clock_.Now() - started_mono_)}});
  NotifyReady(Summary());
  return absl::OkStatus();
}

absl::Status UbDaemon::MakeMemory() {
  NotifyStatus("making the pools");
  BootNotifier notifier(kBootCap);
  auto memory = Memory::Create(config_.pools, [&notifier](uint64_t done, uint64_t total) {
    notifier.Progress("prefaulting blocks", done, total);
  });
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  return absl::OkStatus();
}

absl::Status UbDaemon::MakeServices(const AdminRule& admin) {
  std::vector<PoolSpec> specs;  // as they really are, not as they were wanted
  for (const PoolFacts& facts : memory_->Facts()) specs.push_back(facts.spec);
  pages_ = LeasePages::Create();
  events_ = EventHub::Create();
  broker_ =
      std::make_unique<Broker>(specs, config_.limits, BrokerDeps{clock_, *memory_, *pages_, *events_, FillRandom});
  MetricsSources sources;
  sources.pools = [this] { return broker_->Pools(); };
  sources.facts = [this] { return memory_->Facts(); };
  sources.totals = [this] { return broker_->Totals(); };
  sources.take_backs = [this] {
    SessionRegistry* registry = registry_.load();
    return registry == nullptr ? 0 : registry->TakeBacks();
  };
  auto metrics = Metrics::Create(config_.metrics_listen, std::move(sources));
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  events_->AddSink([this](const WatchedEvent& event) {
    if (metrics_ != nullptr) metrics_->OnEvent(event);
  });
  InstallQuietEngine();
  rpc_ = RpcServer::Create({*broker_, *memory_, *events_, *metrics_, admin, clock_});
  memory_->Start(broker_.get());
  return absl::OkStatus();
}

absl::Status UbDaemon::OpenSockets() {
  auto listeners = OpenListeners(options_.runtime_dir, {config_.socket_mode, config_.socket_group}, PassedSockets());
  if (!listeners.ok()) return listeners.status();
  listeners_ = *std::move(listeners);
  // The loop gets descriptors of its own; the listeners remove the sockets' names at the end.
  SessionServerDeps deps;
  deps.lifeline_listener = ub::UniqueFd(fcntl(listeners_.lifeline->fd(), F_DUPFD_CLOEXEC, 0));
  deps.rpc_listener = ub::UniqueFd(fcntl(listeners_.rpc->fd(), F_DUPFD_CLOEXEC, 0));
  deps.open_fd = [this](BlockId block, Access access) { return memory_->OpenForHolder(block, access); };
  deps.serve_rpc = [this](int fd) { rpc_->ServeFd(fd); };
  deps.limits = SessionLimitsOf(config_);
  auto sessions = SessionServer::Create(std::move(deps), *broker_, *pages_);
  if (!sessions.ok()) return sessions.status();
  sessions_ = *std::move(sessions);
  registry_.store(&sessions_->registry());
  rpc_->Attach(sessions_->registry(), sessions_->connections());
  auto signals = SignalFd({SIGTERM, SIGINT, SIGHUP});
  if (!signals.ok()) return signals.status();
  signals_ = *std::move(signals);
  sessions_->WatchFd(signals_.get(), [this] { OnSignals(); });
  return absl::OkStatus();
}

void UbDaemon::StartWatchdog() {
  std::optional<absl::Duration> period = WatchdogPeriod();
  if (!period) return;
  watchdog_ = Watchdog::Create(listeners_.rpc_path, *period, [] { NotifyWatchdog(); });
  ScheduleWatchdog(*period / 2);
}

void UbDaemon::ScheduleWatchdog(absl::Duration period) {
  sessions_->RunAfter(period, [this, period] {
    if (stopping_) return;
    watchdog_->Check();
    ScheduleWatchdog(period);
  });
}

std::string UbDaemon::Summary() const {
  std::vector<std::string> pools;
  for (const PoolFacts& facts : memory_->Facts()) {
    pools.push_back(
        absl::StrCat(facts.spec.name, ": ", facts.spec.blocks, " x ", ub::FormatSize(facts.spec.block_bytes)));
  }
  return absl::StrCat("serving ", absl::StrJoin(pools, ", "));
}

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
    config_ = plan.merged;
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

void UbDaemon::BeginStop(const std::string& why) {
  if (std::exchange(stopping_, true)) return;
  LogInfo("stopping", {{"why", why}});
  NotifyStopping("stopping");
  rpc_->SetServing(false);
  broker_->Stop(why);
  stopper_ = std::thread([this, why] { rpc_->Shutdown(why, config_.shutdown_grace); });
  sessions_->Stop(config_.shutdown_grace);
  // The loop has closed its own copies: with these gone newcomers are refused at once instead of waiting in the
  // backlog.
  listeners_ = {};
}

// From the edges inwards: first whoever calls, then whoever is called.
UbDaemon::~UbDaemon() {
  if (stopper_.joinable()) stopper_.join();
  watchdog_ = nullptr;
  if (rpc_ != nullptr) rpc_->Shutdown("the daemon ends", absl::ZeroDuration());
  if (memory_ != nullptr) memory_->Stop();
  metrics_ = nullptr;  // nothing but this thread calls the sink any more
  sessions_ = nullptr;
  rpc_ = nullptr;
  broker_ = nullptr;
  events_ = nullptr;
}

}  // namespace

absl::StatusOr<Config> ReadConfig(const std::string& path) {
  if (!path.empty()) return LoadConfig(path);
  return ParseConfig(std::string(EmbeddedConfigText()), std::string(kEmbeddedConfigName));
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Boot(const DaemonOptions& options, const Config& config) {
  auto daemon = std::make_unique<UbDaemon>(options, config);
  if (absl::Status booted = daemon->Boot(); !booted.ok()) return booted;
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace ubd
