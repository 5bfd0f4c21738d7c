// Timed samples and what they amount to. Not thread-safe.
#ifndef UB_UBCTL_BENCH_SAMPLES_H_
#define UB_UBCTL_BENCH_SAMPLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {

// Minor and major faults of this process so far.
uint64_t PageFaults();

class Samples {
 public:
  void Add(uint64_t nanoseconds) { values_.push_back(nanoseconds); }
  void Add(const Samples& other) { values_.insert(values_.end(), other.values_.begin(), other.values_.end()); }
  size_t count() const { return values_.size(); }
  // The value that `percent` of the samples do not exceed (nearest rank); nothing without samples.
  std::optional<uint64_t> Percentile(uint32_t percent) const;

 private:
  std::vector<uint64_t> values_;
};

// A figure of times: p50 and p99 are null without samples.
Figure TimeFigure(std::string_view name, const Samples& samples, std::string_view note = "");
// A figure that could not be taken: all null, and why.
Figure NoFigure(std::string_view name, std::string_view why);
Figure NoFigure(std::string_view name, const absl::Status& why);

// `first` / `second` by p50; null when either was not measured.
Ratio P50Ratio(std::string_view name, const Figure& first, const Figure& second);
// Adds what it must be, and whether it is.
Ratio AtMost(Ratio ratio, double limit);
Ratio AtLeast(Ratio ratio, double limit);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_SAMPLES_H_
