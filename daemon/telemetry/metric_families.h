// The figures of ubd as Prometheus families, made at scrape time. Names end in their base unit, counters in _total.
#ifndef UBD_TELEMETRY_METRIC_FAMILIES_H_
#define UBD_TELEMETRY_METRIC_FAMILIES_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "daemon/telemetry/metrics.h"

namespace ubd {

// What events count up. Thread-safe.
struct EventCounts {
  std::atomic<uint64_t> granted{0}, recycled{0}, tampered{0}, revoked{0}, expired{0}, shared{0};
};

class SourceCollector : public prometheus::Collectable {
 public:
  explicit SourceCollector(MetricsSources sources) : sources_(std::move(sources)) {}
  // From the exposer's threads; asks each source once.
  std::vector<prometheus::MetricFamily> Collect() const override;

  EventCounts counts;

 private:
  void AddPools(std::vector<prometheus::MetricFamily>* families) const;
  void AddFacts(std::vector<prometheus::MetricFamily>* families) const;
  void AddTotals(std::vector<prometheus::MetricFamily>* families) const;
  void AddTransfers(std::vector<prometheus::MetricFamily>* families) const;
  void AddQueues(std::vector<prometheus::MetricFamily>* families) const;
  void AddCounts(std::vector<prometheus::MetricFamily>* families) const;

  const MetricsSources sources_;
};

}  // namespace ubd

#endif  // UBD_TELEMETRY_METRIC_FAMILIES_H_
