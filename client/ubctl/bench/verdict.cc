#include "client/ubctl/bench/verdict.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ub::ctl {
namespace {

constexpr char kStay[] = "stay with what you have";
constexpr char kMeasure[] = "measure your workload";
constexpr char kAdopt[] = "adopt direct";
constexpr char kNone[] = "not measured";

// How far the rounds of one side lie apart, of its median.
double Spread(const TransferSide& side) {
  if (!side.has_bytes_per_s() || side.bytes_per_s() <= 0) return 0;
  return (side.fastest_bytes_per_s() - side.slowest_bytes_per_s()) / side.bytes_per_s();
}

std::string CpuSentence(const AbReport& report) {
  if (!report.direct().has_cpu_s_per_gb() || !report.traditional().has_cpu_s_per_gb()) return "";
  return absl::StrFormat(" Direct takes %.3f CPU seconds per GB, staged %.3f, traditional %.3f.",
                         report.direct().cpu_s_per_gb(), report.staged().cpu_s_per_gb(),
                         report.traditional().cpu_s_per_gb());
}

}  // namespace

const char* VerdictFor(double gain) {
  if (gain < kStayBelow) return kStay;
  return gain < kAdoptFrom ? kMeasure : kAdopt;
}

void Judge(AbReport& report) {
  double direct = report.direct().bytes_per_s();
  double staged = report.staged().bytes_per_s();
  double traditional = report.traditional().bytes_per_s();
  if (direct <= 0 || staged <= 0 || traditional <= 0) {
    report.set_verdict(kNone);
    report.set_advice("one side was not measured, so there is nothing to compare");
    return;
  }
  report.set_gain_over_staged(direct / staged - 1);
  report.set_gain_over_traditional(direct / traditional - 1);
  report.set_gain(direct / std::max(staged, traditional) - 1);
  report.set_verdict(VerdictFor(report.gain()));
  std::string text = absl::StrFormat("Direct moves %+.0f%% against the faster of the others (%s).", report.gain() * 100,
                                     staged >= traditional ? "staged" : "traditional");
  if (report.verdict() == kStay) {
    absl::StrAppend(&text,
                    " Under 10% is not worth a change: keep the path that you have ('ubctl path set staged-only' "
                    "switches a node back).");
  } else if (report.verdict() == kMeasure) {
    absl::StrAppend(&text,
                    " Between 10% and 30% your own job decides: run it both ways ('ubctl path set staged-only', "
                    "then 'prefer-direct').");
  } else {
    absl::StrAppend(&text, " From 30% on it pays: adopt it, then tune ('ubctl tune queue-depth', 'ubctl tune chunk').");
  }
  double spread = std::max({Spread(report.direct()), Spread(report.staged()), Spread(report.traditional())});
  if (spread > std::abs(report.gain())) {
    absl::StrAppend(&text, absl::StrFormat(" The rounds of one side differ by %.0f%%, more than the gain: run more of "
                                           "them on a quiet machine (--rounds).",
                                           spread * 100));
  }
  report.set_advice(text + CpuSentence(report));
}

}  // namespace ub::ctl
