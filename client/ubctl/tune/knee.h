// Where a curve of throughput against a setting stops paying, and what to advise. Pure.
#ifndef UB_UBCTL_TUNE_KNEE_H_
#define UB_UBCTL_TUNE_KNEE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ub::ctl {

struct CurvePoint {
  uint64_t setting = 0;
  double bytes_per_s = 0;
  uint64_t p50_ns = 0;  // 0: not known
};

// Points below this share of the best throughput are not at the top yet: runs of the same thing differ by as much.
inline constexpr double kNearTheTop = 0.95;
// By the rule of this project's A/B: what gains less is not worth a change.
inline constexpr double kWorthAChange = 0.10;
// A deeper queue doubles latency at every step, so it must pay as much as the same rule wants for adopting anything.
inline constexpr double kWorthDeeper = 0.30;
inline constexpr uint32_t kDefaultDepth = 128;
inline constexpr uint32_t kDeepestQueue = 1024;

// The smallest setting that reaches nearly all of the best throughput: beyond it only latency grows. Nothing for a
// curve without points. In ascending order of settings.
std::optional<uint64_t> Knee(const std::vector<CurvePoint>& curve);

struct Advice {
  uint64_t recommended = 0;
  std::optional<double>
      gain_over_default;        // throughput at the recommended setting against the default's; null: unknown
  bool nothing_gained = false;  // the default is as good
  std::string text;
};

// A default deeper than the knee costs nothing as a ring, so it stays unless deeper pays: settings beyond
// `default_depth` are advised only where they gain kWorthDeeper.
Advice AdviseDepth(const std::vector<CurvePoint>& curve, uint64_t default_depth);
// The knee of the chunk size, if it is worth leaving `default_chunk`.
Advice AdviseChunk(const std::vector<CurvePoint>& curve, uint64_t default_chunk);

// 2 x streams x blocks / channels, from 1 to kDeepestQueue.
uint64_t StartingDepth(uint64_t streams, uint64_t blocks, uint64_t channels);

// 1, 2, 4, ... up to `last`, and `also` in its place.
std::vector<uint64_t> DepthSteps(uint64_t last, uint64_t also);

}  // namespace ub::ctl

#endif  // UB_UBCTL_TUNE_KNEE_H_
