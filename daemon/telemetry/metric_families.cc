#include "daemon/telemetry/metric_families.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/queue_names.h"
#include "proto/wire/version.h"

namespace ubd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class FamilyBuilder {
 public:
  FamilyBuilder(const char* name, const char* help, MetricType type) : family_{name, help, type, {}} {}

  FamilyBuilder& Add(uint64_t value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    // Exact up to 2^53; the format has doubles only.
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = static_cast<double>(value);
    family_.metric.push_back(std::move(metric));
    return *this;
  }
  // A family without a figure has no lines at all.
  void To(std::vector<MetricFamily>* families) {
    if (!family_.metric.empty()) families->push_back(std::move(family_));
  }

 private:
  MetricFamily family_;
};

FamilyBuilder Gauge(const char* name, const char* help) { return {name, help, MetricType::Gauge}; }
FamilyBuilder Counter(const char* name, const char* help) { return {name, help, MetricType::Counter}; }

}  // namespace

std::vector<MetricFamily> SourceCollector::Collect() const {
  std::vector<MetricFamily> families;
  Gauge("ubd_build_info", "Version of the daemon and of its protocol; always 1.")
      .Add(1, {{"version", std::string(ub::ReleaseVersion())}, {"protocol", absl::StrCat(ub::ProtocolVersion())}})
      .To(&families);
  AddPools(&families);
  AddFacts(&families);
  AddTotals(&families);
  AddTransfers(&families);
  AddQueues(&families);
  AddCounts(&families);
  return families;
}

void SourceCollector::AddPools(std::vector<MetricFamily>* families) const {
  if (!sources_.pools) return;
  auto blocks = Gauge("ubd_pool_blocks", "Blocks of a pool by state; the states add up to the pool.");
  auto retired =
      Gauge("ubd_blocks_retired", "Old backings of blocks that somebody still holds; beside the pool's blocks.");
  auto size = Gauge("ubd_pool_block_bytes", "Size of a block of the pool.");
  auto waiters = Gauge("ubd_pool_waiters", "Requests that wait for blocks of the pool.");
  for (const PoolListing& pool : sources_.pools()) {
    const std::string& name = pool.spec.name;
    blocks.Add(pool.free, {{"pool", name}, {"state", "free"}})
        .Add(pool.leased, {{"pool", name}, {"state", "leased"}})
        .Add(pool.cached, {{"pool", name}, {"state", "cached"}})
        .Add(pool.draining, {{"pool", name}, {"state", "draining"}})
        .Add(pool.recycling, {{"pool", name}, {"state", "recycling"}});
    retired.Add(pool.retired, {{"pool", name}});
    size.Add(pool.spec.block_bytes.count(), {{"pool", name}});
    waiters.Add(pool.waiters, {{"pool", name}});
  }
  for (FamilyBuilder* builder : {&blocks, &retired, &size, &waiters}) builder->To(families);
}

void SourceCollector::AddFacts(std::vector<MetricFamily>* families) const {
  if (!sources_.facts) return;
  auto page = Gauge("ubd_pool_page_bytes", "Page size that the pool got.");
  auto reserve = Gauge("ubd_pool_reserve_blocks", "Clean backings in store now.");
  for (const PoolFacts& pool : sources_.facts()) {
    page.Add(pool.page_size.count(), {{"pool", pool.spec.name}});
    reserve.Add(pool.reserve, {{"pool", pool.spec.name}});
  }
  page.To(families);
  reserve.To(families);
}

void SourceCollector::AddTotals(std::vector<MetricFamily>* families) const {
  if (!sources_.totals) return;
  BrokerTotals totals = sources_.totals();
  Gauge("ubd_leases", "Leases held, cached ones included.").Add(totals.leases).To(families);
  Gauge("ubd_sessions", "Client processes with a session.").Add(totals.sessions).To(families);
  Gauge("ubd_waiters", "Requests that wait for memory.").Add(totals.waiters).To(families);
  Gauge("ubd_draining", "1 while the daemon is told to grant nothing new.").Add(totals.draining).To(families);
  Counter("ubd_reclaimed_sessions_total",
          "Sessions that ended without saying so, mostly by the death of their process.")
      .Add(totals.reclaimed_sessions)
      .To(families);
  Counter("ubd_reclaimed_leases_total", "Leases taken back from such sessions, and from calls whose caller had gone.")
      .Add(totals.reclaimed_leases)
      .To(families);
}

void SourceCollector::AddTransfers(std::vector<MetricFamily>* families) const {
  if (!sources_.paths) return;
  const PathStatus paths = sources_.paths();
  auto transfers = Counter("ubd_transfers_total", "Transfers that ended, by the path that they took and why.");
  auto bytes = Counter("ubd_transfer_bytes_total", "Bytes that they moved.");
  auto failed = Counter("ubd_transfers_failed_total", "Transfers of these that failed.");
  for (const PathCounter& counter : paths.counts) {
    const Labels labels = {{"path", ub::wire::PathName(counter.path)},
                           {"reason", ub::wire::PathReasonName(counter.reason)},
                           {"from", ub::wire::MemoryKindName(counter.from)},
                           {"to", ub::wire::MemoryKindName(counter.to)}};
    transfers.Add(counter.transfers, labels);
    bytes.Add(counter.bytes, labels);
    failed.Add(counter.failed, labels);
  }
  for (FamilyBuilder* builder : {&transfers, &bytes, &failed}) builder->To(families);
  Gauge("ubd_blocks_registered", "1 while every backing is registered with the file engine.")
      .Add(paths.registered)
      .To(families);
  Gauge("ubd_path_policy", "The node's path policy; always 1.")
      .Add(1, {{"policy", ub::wire::PathPolicyName(paths.policy)}})
      .To(families);
}

void SourceCollector::AddQueues(std::vector<MetricFamily>* families) const {
  if (!sources_.queues) return;
  // Always there, so that nothing looks like no data.
  std::map<std::string, uint64_t> states = {{"open", 0}, {"closing", 0}, {"broken", 0}};
  uint64_t in_flight = 0, waiting = 0;
  for (const QueueListing& queue : sources_.queues()) {
    ++states[queue.state.substr(0, queue.state.find(':'))];
    in_flight += queue.in_flight;
    waiting += queue.waiting;
  }
  auto queues = Gauge("ubd_queues", "Queues of clients by state.");
  for (const auto& [state, count] : states) queues.Add(count, {{"state", state}});
  queues.To(families);
  Gauge("ubd_transfers_in_flight", "Transfers taken and not yet ended.").Add(in_flight).To(families);
  Gauge("ubd_transfers_waiting", "Transfers submitted and not yet taken.").Add(waiting).To(families);
}

void SourceCollector::AddCounts(std::vector<MetricFamily>* families) const {
  auto grants =
      Counter("ubd_grants_total", "Leases granted, by the daemon or from a client's own cache (as the client counts).");
  grants.Add(counts.granted, {{"source", "daemon"}});
  if (sources_.take_backs) grants.Add(sources_.take_backs(), {{"source", "cache"}});
  grants.To(families);
  Counter("ubd_recycles_total", "Blocks that got fresh backing.").Add(counts.recycled).To(families);
  Counter("ubd_tampered_total", "Blocks whose memory a client tampered with.").Add(counts.tampered).To(families);
  Counter("ubd_revoked_total", "Leases revoked by an administrator.").Add(counts.revoked).To(families);
  Counter("ubd_expired_total", "Leases that reached their time to live.").Add(counts.expired).To(families);
  Counter("ubd_shares_total", "Tickets given out for shared leases.").Add(counts.shared).To(families);
}

}  // namespace ubd
