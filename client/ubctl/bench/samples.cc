#include "client/ubctl/bench/samples.h"

#include <sys/resource.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace ub::ctl {

uint64_t PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt) + static_cast<uint64_t>(usage.ru_majflt);
}

std::optional<uint64_t> Samples::Percentile(uint32_t percent) const {
  if (values_.empty()) return std::nullopt;
  std::vector<uint64_t> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

Figure TimeFigure(std::string_view name, const Samples& samples, std::string_view note) {
  Figure figure;
  figure.set_name(std::string(name));
  if (auto p50 = samples.Percentile(50)) figure.set_p50_ns(*p50);
  if (auto p99 = samples.Percentile(99)) figure.set_p99_ns(*p99);
  figure.set_samples(samples.count());
  if (!note.empty()) figure.set_note(std::string(note));
  return figure;
}

Figure NoFigure(std::string_view name, std::string_view why) {
  Figure figure;
  figure.set_name(std::string(name));
  figure.set_note("not measured: " + std::string(why));
  return figure;
}

Figure NoFigure(std::string_view name, const absl::Status& why) {
  return NoFigure(name, std::string_view(why.message().data(), why.message().size()));
}

Ratio P50Ratio(std::string_view name, const Figure& first, const Figure& second) {
  Ratio ratio;
  ratio.set_name(std::string(name));
  if (first.has_p50_ns() && second.has_p50_ns() && second.p50_ns() > 0) {
    ratio.set_value(static_cast<double>(first.p50_ns()) / static_cast<double>(second.p50_ns()));
  }
  return ratio;
}

Ratio AtMost(Ratio ratio, double limit) {
  ratio.set_must(absl::StrFormat("<= %g", limit));
  if (ratio.has_value()) ratio.set_met(ratio.value() <= limit);
  return ratio;
}

Ratio AtLeast(Ratio ratio, double limit) {
  ratio.set_must(absl::StrFormat(">= %g", limit));
  if (ratio.has_value()) ratio.set_met(ratio.value() >= limit);
  return ratio;
}

}  // namespace ub::ctl
