// Prometheus metrics on a loopback port: pool states, leases, waiters, wait time, grants by source (cache, daemon),
// recycles, deaths reclaimed, transfers by the path that they took, queues, RPC latency. Off unless configured; then
// nothing of it costs anything. Thread-safe.
#ifndef UBD_TELEMETRY_METRICS_H_
#define UBD_TELEMETRY_METRICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/listings.h"
#include "daemon/engine/engine.h"
#include "daemon/memory/memory.h"
#include "daemon/telemetry/event_hub.h"

namespace ubd {

// Where figures come from at scrape time.
struct MetricsSources {
  std::function<std::vector<PoolListing>()> pools;
  std::function<std::vector<PoolFacts>()> facts;
  std::function<BrokerTotals()> totals;
  std::function<uint64_t()> take_backs;  // grants served from client caches
  std::function<PathStatus()> paths;
  std::function<std::vector<QueueListing>()> queues;
};

class Metrics {
 public:
  virtual ~Metrics() = default;
  // One finished RPC.
  virtual void ObserveRpc(std::string_view method, std::string_view code, absl::Duration latency) = 0;
  // Feed to EventHub::AddSink.
  virtual void OnEvent(const WatchedEvent& event) = 0;

  // `listen` is a loopback "address:port"; anything else, or a port in use, is an error that says so. Empty: metrics
  // that do nothing.
  static absl::StatusOr<std::unique_ptr<Metrics>> Create(const std::string& listen, MetricsSources sources);
};

}  // namespace ubd

#endif  // UBD_TELEMETRY_METRICS_H_
