#include "client/ubctl/bench/sessions.h"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/child_protocol.h"
#include "client/ubctl/bench/proc.h"
#include "client/ubctl/bench/samples.h"
#include "client/ubctl/child.h"

namespace ub::ctl {
namespace {

constexpr char kSessionsName[] = "sessions_1000";
constexpr char kWakeupsName[] = "idle_wakeups_per_s";
constexpr uint64_t kSessions = 1000;
constexpr uint64_t kChildren = 10;  // 100 sessions each fit under an ordinary limit of 1024 fds
constexpr int kIdleMs = 20000;

absl::StatusOr<Samples> OpenSessions(const BenchSetting& setting, std::vector<Child>& children) {
  for (uint64_t i = 0; i < kChildren; ++i) {
    auto child = Child::Start({"--runtime-dir", setting.context.runtime_dir, "--timeout", "60s", "bench-sessions",
                               "--pool", setting.pool.name(), "--sessions", absl::StrCat(kSessions / kChildren)});
    if (!child.ok()) return child.status();
    children.push_back(*std::move(child));
  }
  Samples samples;
  for (const Child& child : children) {
    auto times = AwaitReport(child.socket());
    if (!times.ok()) return times.status();
    for (uint64_t time : *times) samples.Add(time);
  }
  return samples;
}

absl::StatusOr<std::vector<uint64_t>> TakeSessions(const BenchSetting& setting, uint64_t sessions,
                                                   std::vector<std::unique_ptr<Client>>& clients,
                                                   std::vector<Lease>& leases) {
  std::vector<uint64_t> times;
  for (uint64_t i = 0; i < sessions; ++i) {
    auto client = ConnectFor(setting, Bytes(0));
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
    uint64_t before = NowNs();
    auto lease = clients.back()->Acquire(Take(setting, Bytes(1)));
    if (!lease.ok()) return lease.status();
    times.push_back(NowNs() - before);
    leases.push_back(*std::move(lease));
  }
  return times;
}

}  // namespace

Figure Sessions1000(const BenchSetting& setting) {
  if (setting.pool.blocks_free() < kSessions) {
    return NoFigure(kSessionsName, absl::StrCat("needs 1000 free blocks, pool ", setting.pool.name(), " has ",
                                                setting.pool.blocks_free()));
  }
  std::vector<Child> children;
  auto samples = OpenSessions(setting, children);
  if (!samples.ok()) return NoFigure(kSessionsName, samples.status());
  auto memory = OwnMemory(setting.status.pid());
  Figure figure = TimeFigure(kSessionsName, *samples,
                             "Acquire of one block in each of 1000 sessions of 10 processes at once; value: the "
                             "daemon's RssAnon + RssFile meanwhile");
  figure.set_unit("bytes");
  if (memory.ok()) figure.set_value(static_cast<double>(*memory));
  return figure;
}

ExitCode HoldSessionsForBench(const Context& context, const std::string& pool, uint64_t sessions, int socket) {
  BenchSetting setting{.context = context};
  setting.pool.set_name(pool);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Lease> leases;  // before the clients in destruction
  auto times = TakeSessions(setting, sessions, clients, leases);
  if (!times.ok()) {
    (void)ReportFailure(socket, times.status());
    return ExitCodeFor(times.status());
  }
  if (ReportValues(socket, *times).ok()) AwaitHangUp(socket);
  return ExitCode::kOk;
}

Figure IdleWakeups(const BenchSetting& setting) {
  auto before = VoluntarySwitches(setting.status.pid());
  if (!before.ok()) return NoFigure(kWakeupsName, before.status());
  uint64_t start = NowNs();
  (void)poll(nullptr, 0, kIdleMs);
  auto after = VoluntarySwitches(setting.status.pid());
  if (!after.ok()) return NoFigure(kWakeupsName, after.status());
  double seconds = static_cast<double>(NowNs() - start) / 1e9;
  Figure figure = NoFigure(kWakeupsName, "");
  figure.set_note("voluntary context switches of all threads of the daemon over 20 s");
  figure.set_samples(1);
  figure.set_unit("1/s");
  figure.set_value(static_cast<double>(*after - std::min(*before, *after)) / seconds);
  return figure;
}

}  // namespace ub::ctl
