#include "client/ubctl/bench/reclaim.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ubctl/admin.h"
#include "client/ubctl/bench/child_protocol.h"
#include "client/ubctl/bench/samples.h"
#include "client/ubctl/child.h"

namespace ub::ctl {
namespace {

constexpr char kName[] = "reclaim_after_kill";
constexpr uint64_t kMostKills = 20;
// Filling a larger pool would take longer than it tells.
constexpr Bytes kLargestPool = GiB(64);

absl::StatusOr<Child> StartHolder(const BenchSetting& setting) {
  auto child =
      Child::Start({"--runtime-dir", setting.context.runtime_dir, "--timeout",
                    absl::FormatDuration(setting.context.timeout), "bench-holder", "--pool", setting.pool.name()});
  if (!child.ok()) return child.status();
  auto ready = AwaitReport(child->socket());
  if (!ready.ok()) return ready.status();
  return child;
}

// Leases all that is still free.
absl::StatusOr<std::vector<Lease>> FillPool(Client& client, const BenchSetting& setting) {
  std::vector<Lease> fill;
  while (true) {
    auto pools = AskDaemon(setting.context, &Admin::Stub::ListPools, v1::ListPoolsRequest());
    if (!pools.ok()) return pools.status();
    uint64_t free = 0;
    for (const v1::Pool& pool : pools->pools()) {
      if (pool.name() == setting.pool.name()) free = pool.blocks_free();
    }
    if (free == 0) return fill;
    AcquireOptions options = Take(setting, Bytes(setting.pool.block_bytes()) * free);
    options.cacheable = false;
    auto lease = client.Acquire(options);
    if (!lease.ok()) return lease.status();
    fill.push_back(*std::move(lease));
  }
}

absl::Status KillSamples(const BenchSetting& setting, Samples& samples) {
  auto client = ConnectFor(setting, Bytes(0));
  if (!client.ok()) return client.status();
  auto child = StartHolder(setting);
  if (!child.ok()) return child.status();
  auto fill = FillPool(**client, setting);
  if (!fill.ok()) return fill.status();
  AcquireOptions options = Take(setting);
  options.cacheable = false;
  for (uint64_t wanted = std::min(setting.samples, kMostKills); samples.count() < wanted;) {
    uint64_t before = NowNs();
    child->Kill();
    auto lease = (*client)->Acquire(options);
    uint64_t taken = NowNs() - before;
    if (!lease.ok()) return lease.status();
    samples.Add(taken);
    (void)child->Reap();
    if (absl::Status status = lease->Release(); !status.ok()) return status;
    auto next = StartHolder(setting);  // takes what was just given back
    if (!next.ok()) return next.status();
    child = std::move(next);
  }
  return absl::OkStatus();
}

}  // namespace

Figure ReclaimAfterKill(const BenchSetting& setting) {
  if (Bytes(setting.pool.block_bytes()) * setting.pool.blocks_total() > kLargestPool) {
    return NoFigure(kName, "the pool is larger than 64 GiB, and all of it would have to be leased");
  }
  Samples samples;
  if (absl::Status status = KillSamples(setting, samples); !status.ok()) return NoFigure(kName, status);
  return TimeFigure(kName, samples, "SIGKILL of the holder of 64 MiB to their lease by another, nothing else free");
}

ExitCode HoldForBench(const Context& context, const std::string& pool, int socket) {
  BenchSetting setting{.context = context};
  setting.pool.set_name(pool);
  auto client = ConnectFor(setting, Bytes(0));
  absl::Status status = client.status();
  if (client.ok()) {
    auto lease = (*client)->Acquire(Take(setting));
    status = lease.status();
    if (lease.ok()) {
      for (size_t at = 0; at < lease->size(); at += 4096) lease->data()[at] = std::byte{1};
      if (ReportValues(socket, {lease->id().value()}).ok()) AwaitHangUp(socket);
      return ExitCode::kOk;
    }
  }
  (void)ReportFailure(socket, status);
  return ExitCodeFor(status);
}

}  // namespace ub::ctl
