#include "client/ubctl/tune/knee.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/human.h"

namespace ub::ctl {
namespace {

double Best(const std::vector<CurvePoint>& curve) {
  double best = 0;
  for (const CurvePoint& point : curve) best = std::max(best, point.bytes_per_s);
  return best;
}

const CurvePoint* Find(const std::vector<CurvePoint>& curve, uint64_t setting) {
  for (const CurvePoint& point : curve) {
    if (point.setting == setting) return &point;
  }
  return nullptr;
}

std::optional<double> Gain(const CurvePoint* to, const CurvePoint* from) {
  if (to == nullptr || from == nullptr || from->bytes_per_s <= 0) return std::nullopt;
  return to->bytes_per_s / from->bytes_per_s - 1;
}

std::string Latency(const CurvePoint* knee, const CurvePoint* other) {
  if (knee == nullptr || other == nullptr || knee->p50_ns == 0 || other->p50_ns == 0) return "";
  return absl::StrCat(" (p50 ", HumanDuration(knee->p50_ns), " at ", knee->setting, ", ", HumanDuration(other->p50_ns),
                      " at ", other->setting, ")");
}

}  // namespace

std::optional<uint64_t> Knee(const std::vector<CurvePoint>& curve) {
  double enough = Best(curve) * kNearTheTop;
  for (const CurvePoint& point : curve) {
    if (point.bytes_per_s > 0 && point.bytes_per_s >= enough) return point.setting;
  }
  return std::nullopt;
}

Advice AdviseDepth(const std::vector<CurvePoint>& curve, uint64_t default_depth) {
  Advice advice;
  advice.recommended = default_depth;
  std::optional<uint64_t> knee = Knee(curve);
  if (!knee.has_value()) {
    advice.nothing_gained = true;
    advice.text = "nothing was measured: keep the default";
    return advice;
  }
  const CurvePoint* at_knee = Find(curve, *knee);
  const CurvePoint* at_default = Find(curve, default_depth);
  advice.gain_over_default = Gain(at_knee, at_default);
  if (*knee > default_depth && advice.gain_over_default.value_or(0) >= kWorthDeeper) {
    advice.recommended = *knee;
    advice.text = absl::StrFormat("open queues of depth %d: it pays here, %.0f%% over the default of %d%s", *knee,
                                  *advice.gain_over_default * 100, default_depth, Latency(at_knee, at_default));
    return advice;
  }
  advice.nothing_gained = true;
  if (*knee > default_depth) {
    advice.text = absl::StrFormat("keep the default of %d: deeper gains less than %.0f%%, and latency grows%s",
                                  default_depth, kWorthDeeper * 100, Latency(at_default, at_knee));
  } else {
    advice.text = absl::StrFormat(
        "keep the default of %d: a deeper queue gains nothing here. %d in flight reach nearly all the throughput "
        "there is; keeping more in flight only adds latency%s",
        default_depth, *knee, *knee == default_depth ? "" : Latency(at_knee, at_default));
  }
  return advice;
}

Advice AdviseChunk(const std::vector<CurvePoint>& curve, uint64_t default_chunk) {
  Advice advice;
  advice.recommended = default_chunk;
  std::optional<uint64_t> knee = Knee(curve);
  if (!knee.has_value()) {
    advice.nothing_gained = true;
    advice.text = "nothing was measured: keep the chunk that you have";
    return advice;
  }
  const CurvePoint* at_knee = Find(curve, *knee);
  const CurvePoint* at_default = Find(curve, default_chunk);
  advice.gain_over_default = Gain(at_knee, at_default);
  advice.recommended = *knee;
  if (advice.gain_over_default.has_value() && *advice.gain_over_default < kWorthAChange) {
    advice.nothing_gained = true;
    advice.recommended = default_chunk;
    advice.text = absl::StrFormat("keep chunks of %s: another size gains less than %.0f%%%s", HumanSize(default_chunk),
                                  kWorthAChange * 100,
                                  *knee < default_chunk ? absl::StrCat("; ", HumanSize(*knee), " do as well") : "");
    return advice;
  }
  advice.text =
      absl::StrCat("read in chunks of ", HumanSize(*knee),
                   advice.gain_over_default.has_value()
                       ? absl::StrFormat(": %.0f%% over %s", *advice.gain_over_default * 100, HumanSize(default_chunk))
                       : std::string(": larger ones gain nothing"));
  return advice;
}

uint64_t StartingDepth(uint64_t streams, uint64_t blocks, uint64_t channels) {
  constexpr uint64_t kMost = uint64_t{1} << 20;  // of each factor, so that nothing overflows
  uint64_t depth = 2 * std::min(streams, kMost) * std::min(blocks, kMost) / std::max<uint64_t>(channels, 1);
  return std::clamp<uint64_t>(depth, 1, kDeepestQueue);
}

std::vector<uint64_t> DepthSteps(uint64_t last, uint64_t also) {
  std::vector<uint64_t> steps;
  for (uint64_t depth = 1; depth <= last; depth *= 2) steps.push_back(depth);
  if (also >= 1 && also <= last && !std::binary_search(steps.begin(), steps.end(), also)) {
    steps.insert(std::upper_bound(steps.begin(), steps.end(), also), also);
  }
  return steps;
}

}  // namespace ub::ctl
