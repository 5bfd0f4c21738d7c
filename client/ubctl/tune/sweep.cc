#include "client/ubctl/tune/sweep.h"

#include "client/ubctl/load/cold_cache.h"

namespace ub::ctl {

absl::StatusOr<SweepResult> Sweep(Workbench& bench, const std::vector<SweepPoint>& points, uint64_t rounds,
                                  absl::Duration time, bool staged) {
  std::vector<SideSummary> sums(points.size());
  std::vector<SideSummary> staged_sums(points.size());
  SweepResult result;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < points.size(); ++i) {
      LoadPlan load = points[i].load;
      load.at_most = time;
      if (!bench.file.direct()) (void)DropCache(bench.fd.get(), bench.file_bytes());
      auto one = bench.Load().Run(load);
      if (!one.ok()) return one.status();
      result.paths.Merge(one->paths);
      sums[i].Add(*one);
      if (!staged) continue;
      (void)DropCache(bench.fd.get(), bench.file_bytes());
      load.policy = PathPolicy::kStagedOnly;
      auto other = bench.Load().Run(load);
      if (!other.ok()) return other.status();
      staged_sums[i].Add(*other);
    }
  }
  for (size_t i = 0; i < points.size(); ++i) {
    TransferSide side = sums[i].Side();
    TunePoint point;
    point.set_setting(points[i].setting);
    point.set_depth(points[i].load.depth);
    if (side.has_bytes_per_s()) point.set_bytes_per_s(side.bytes_per_s());
    if (side.has_p50_ns()) point.set_p50_ns(side.p50_ns());
    if (side.has_p99_ns()) point.set_p99_ns(side.p99_ns());
    if (side.has_cpu_s_per_gb()) point.set_cpu_s_per_gb(side.cpu_s_per_gb());
    TransferSide other = staged_sums[i].Side();
    if (other.has_bytes_per_s()) point.set_staged_bytes_per_s(other.bytes_per_s());
    result.points.push_back(point);
  }
  return result;
}

std::vector<CurvePoint> CurveOf(const std::vector<TunePoint>& points) {
  std::vector<CurvePoint> curve;
  curve.reserve(points.size());
  for (const TunePoint& point : points)
    curve.push_back({.setting = point.setting(), .bytes_per_s = point.bytes_per_s(), .p50_ns = point.p50_ns()});
  return curve;
}

std::optional<uint64_t> DirectPaysFrom(const std::vector<TunePoint>& points) {
  std::optional<uint64_t> from;
  for (const TunePoint& point : points) {
    if (!point.has_staged_bytes_per_s()) return std::nullopt;
    if (point.bytes_per_s() <= point.staged_bytes_per_s()) {
      from.reset();
    } else if (!from.has_value()) {
      from = point.setting();
    }
  }
  return from;
}

}  // namespace ub::ctl
