#include "daemon/daemon.h"

#include <fcntl.h>
#include <sys/random.h>

#include <csignal>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/embedded.h"
#include "daemon/offer_judge.h"
#include "daemon/quiet_engine.h"
#include "daemon/service/notify.h"
#include "daemon/session/fd_room.h"
#include "daemon/signals.h"
#include "daemon/telemetry/log.h"
#include "daemon/ub_daemon.h"
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

}  // namespace

SessionLimits SessionLimitsOf(const Config& config) {
  return {config.max_sessions, config.max_sessions_per_uid, config.max_connections_per_uid, config.handshake_timeout};
}

absl::Status UbDaemon::Boot() {
  // First: it must inherit nothing.
  absl::StatusOr<std::unique_ptr<Doorman>> doorman = Doorman::Start(MakeOfferJudge(config_.engine.files.file_systems));
  if (!doorman.ok()) return doorman.status();
  doorman_ = *std::move(doorman);
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
    if (absl::Status made = MakeEngine(); !made.ok()) return made;
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

// The rings register every block; from here on also each new one.
absl::Status UbDaemon::MakeEngine() {
  BootNotifier notifier(kBootCap);
  notifier.Progress("registering blocks", 0, 1);
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::Create(config_.engine, *memory_);
  if (!engine.ok()) return engine.status();
  engine_ = *std::move(engine);
  notifier.Progress("registering blocks", 1, 1);
  const PathStatus paths = engine_->Paths();
  LogInfo("engine", {{"files", paths.file_engine}, {"registered", paths.registration}});
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
  sources.paths = [this] { return engine_->Paths(); };
  sources.queues = [this] { return engine_->Queues(); };
  auto metrics = Metrics::Create(config_.metrics_listen, std::move(sources));
  if (!metrics.ok()) return metrics.status();
  metrics_ = *std::move(metrics);
  events_->AddSink([this](const WatchedEvent& event) {
    if (metrics_ != nullptr) metrics_->OnEvent(event);
  });
  InstallQuietEngine();
  rpc_ = RpcServer::Create({*broker_, *memory_, *events_, *metrics_, *engine_, admin, clock_});
  memory_->Start(broker_.get());
  engine_->Start(*broker_);
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
  deps.doorman = std::move(doorman_);
  deps.hooks.opened = [this](const SessionFacts& facts) { engine_->OpenSession(facts.id, facts.uid, facts.pid); };
  deps.hooks.closing = [this](SessionId id) { engine_->CloseSession(id); };
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
