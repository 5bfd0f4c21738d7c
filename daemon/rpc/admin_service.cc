#include "daemon/rpc/admin_service.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/problems.h"
#include "daemon/rpc/translate.h"
#include "daemon/rpc/validators.h"
#include "daemon/rpc/watch.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"
#include "proto/wire/version.h"

namespace ubd {
namespace {

constexpr uint32_t kWatchesPerUid = 64;

uint64_t OpenFds() {
  uint64_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return count == 0 ? 0 : count - 1;  // without the one that reads the directory
}

uint64_t FdLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

const char* StateName(const BrokerTotals& totals) {
  if (totals.stopping) return "stopping";
  return totals.draining ? "draining" : "serving";
}

}  // namespace

void AdminService::Listen() {
  using S = ub::v1::Admin::AsyncService;
  ServeUnary(context_, service_, &S::RequestGetStatus, "Admin.GetStatus",
             [this](auto call) { call->Reply(GetStatus(call->peer())); });
  ServeUnary(context_, service_, &S::RequestListPools, "Admin.ListPools",
             [this](auto call) { call->Reply(ListPools()); });
  ServeUnary(context_, service_, &S::RequestListBlocks, "Admin.ListBlocks", [this](auto call) { ListBlocks(call); });
  ServeUnary(context_, service_, &S::RequestListLeases, "Admin.ListLeases", [this](auto call) { ListLeases(call); });
  ServeUnary(context_, service_, &S::RequestListSessions, "Admin.ListSessions",
             [this](auto call) { ListSessions(call); });
  ServeUnary(context_, service_, &S::RequestRevokeLease, "Admin.RevokeLease", [this](auto call) { RevokeLease(call); });
  ServeUnary(context_, service_, &S::RequestSetDrain, "Admin.SetDrain", [this](auto call) { SetDrain(call); });
  ServeStream(context_, service_, &S::RequestWatchAll, [this](auto call) { WatchAll(call); });
  ListenData();
}

void AdminService::SetFacts(DaemonFacts facts) {
  ub::MutexLock lock(&mu_);
  facts_ = std::move(facts);
}

ub::v1::Status AdminService::GetStatus(const RpcPeer& peer) {
  ProblemSources sources;
  sources.pools = context_.deps.broker.Pools();
  sources.facts = context_.deps.memory.Facts();
  sources.totals = context_.deps.broker.Totals();
  sources.reuse_test = context_.deps.memory.ReuseTest();
  sources.paths = context_.deps.engine.Paths();
  sources.queues = context_.deps.engine.Queues();
  sources.register_blocks = context_.deps.engine.options().register_blocks;
  sources.fds_open = OpenFds();
  sources.fds_limit = FdLimit();
  DaemonFacts facts;
  {
    ub::MutexLock lock(&mu_);
    facts = facts_;
  }
  ub::v1::Status status;
  status.set_version(std::string(ub::ReleaseVersion()));
  status.set_protocol(ub::ProtocolVersion());
  status.set_pid(getpid());
  status.set_uptime_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(context_.deps.clock.Now() - facts.started_mono)));
  status.set_state(StateName(sources.totals));
  status.set_runtime_dir(facts.runtime_dir);
  status.set_config_path(facts.config_path);
  status.set_sessions(sources.totals.sessions);
  status.set_leases(sources.totals.leases);
  status.set_waiters(sources.totals.waiters);
  status.set_reclaimed_sessions(sources.totals.reclaimed_sessions);
  status.set_reclaimed_leases(sources.totals.reclaimed_leases);
  status.set_isolation_advisory(ReadOnlyIsAdvisory(peer.uid));
  status.set_reuse_test(sources.reuse_test);
  for (std::string& problem : FindProblems(sources)) status.add_problem(std::move(problem));
  status.set_boot_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(facts.boot)));
  status.set_fds_open(sources.fds_open);
  status.set_fds_limit(sources.fds_limit);
  return status;
}

ub::v1::PoolList AdminService::ListPools() {
  std::vector<PoolFacts> facts = context_.deps.memory.Facts();
  ub::v1::PoolList list;
  for (const PoolListing& pool : context_.deps.broker.Pools()) {
    const PoolFacts* found = nullptr;
    for (const PoolFacts& candidate : facts) {
      if (candidate.spec.name == pool.spec.name) found = &candidate;
    }
    *list.add_pools() = ToProto(pool, found);
  }
  return list;
}

void AdminService::ListBlocks(const CallPtr<ub::v1::ListBlocksRequest, ub::v1::BlockList>& call) {
  absl::StatusOr<std::optional<std::string>> wanted = CheckListBlocks(call->request());
  if (!wanted.ok()) return call->Fail(wanted.status());
  if (!MayList(call)) return;
  bool known = !wanted->has_value();
  ub::v1::BlockList list;
  for (const BlockListing& block : context_.deps.broker.Blocks(context_.ViewerOf(call->peer()))) {
    if (wanted->has_value() && block.pool != **wanted) continue;
    known = true;
    *list.add_blocks() = ToProto(block);
  }
  if (known) return call->Reply(list);
  call->Fail(ub::MakeError(absl::StatusCode::kNotFound, ub::Reason::kNoSuchPool,
                           absl::StrCat("there is no pool \"", **wanted, "\": `ubctl pools` lists them")));
}

void AdminService::ListLeases(const CallPtr<ub::v1::ListLeasesRequest, ub::v1::LeaseList>& call) {
  if (!MayList(call)) return;
  ub::v1::LeaseList list;
  for (const LeaseListing& lease : context_.deps.broker.Leases(context_.ViewerOf(call->peer()))) {
    *list.add_leases() = ToProto(lease);
  }
  call->Reply(list);
}

void AdminService::ListSessions(const CallPtr<ub::v1::ListSessionsRequest, ub::v1::SessionList>& call) {
  if (!MayList(call)) return;
  SessionRegistry* registry = context_.sessions.load();
  ub::v1::SessionList list;
  for (const SessionListing& listed : context_.deps.broker.Sessions(context_.ViewerOf(call->peer()))) {
    std::shared_ptr<Session> session = registry->Find(listed.facts.id);
    *list.add_sessions() = ToProto(listed, session == nullptr ? 0 : session->fds_in_flight());
  }
  call->Reply(list);
}

void AdminService::WatchAll(const std::shared_ptr<StreamCall<ub::v1::WatchAllRequest, ub::v1::Event>>& call) {
  Viewer viewer = context_.ViewerOf(call->peer());
  auto visible = [viewer](const Event& event) {
    return viewer.admin || ConcernsAll(event.kind) || event.uid == viewer.uid;
  };
  StartWatch(call, visible, {absl::StrCat("uid ", viewer.uid.value()), kWatchesPerUid}, nullptr);
}

void AdminService::RevokeLease(const CallPtr<ub::v1::RevokeLeaseRequest, ub::v1::RevokeLeaseResponse>& call) {
  absl::StatusOr<RevokeOrder> order = CheckRevoke(call->request());
  if (!order.ok()) return call->Fail(order.status());
  absl::Status revoked = context_.deps.broker.Revoke(context_.ViewerOf(call->peer()), order->lease, order->why);
  revoked.ok() ? call->Reply({}) : call->Fail(revoked);
}

void AdminService::SetDrain(const CallPtr<ub::v1::SetDrainRequest, ub::v1::SetDrainResponse>& call) {
  absl::StatusOr<bool> drain = CheckSetDrain(call->request());
  if (!drain.ok()) return call->Fail(drain.status());
  if (!context_.ViewerOf(call->peer()).admin) {
    return call->Fail(ub::MakeError(absl::StatusCode::kPermissionDenied, ub::Reason::kNotAdmin,
                                    "only root, the daemon's own user and the configured admin group may drain: ask "
                                    "one of them, or set admin { group } in the config"));
  }
  ub::v1::SetDrainResponse reply;
  reply.set_leases_left(context_.deps.broker.SetDrain(*drain));
  LogInfo(*drain ? "draining: nothing new is granted" : "granting again",
          {{"uid", absl::StrCat(call->peer().uid.value())}, {"pid", absl::StrCat(call->peer().pid)}});
  call->Reply(reply);
}

}  // namespace ubd
