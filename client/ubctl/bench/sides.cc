#include "client/ubctl/bench/sides.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/ubctl/load/cold_cache.h"
#include "client/ubctl/load/plain_load.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

enum Way : size_t { kDirectWay = 0, kStagedWay = 1, kTraditionalWay = 2 };
constexpr size_t kWays = 3;
constexpr char kTraditionalPath[] = "read and copy";

absl::StatusOr<LoadResult> RunOne(Workbench& bench, const SidesPlan& plan, Way way) {
  LoadPlan load = {.chunk = plan.chunk, .depth = plan.depth, .bytes = plan.bytes, .at_most = plan.at_most};
  if (way == kTraditionalWay) return RunTraditional(bench.fd.get(), bench.memory.span(), load, bench.meter);
  load.policy = way == kDirectWay ? PathPolicy::kDirectOnly : PathPolicy::kStagedOnly;
  auto result = bench.Load().Run(load);
  if (result.ok() && way == kDirectWay) {
    if (absl::Status status = CheckAllDirect(result->paths); !status.ok()) return status;
  }
  return result;
}

}  // namespace

absl::StatusOr<SidesResult> MeasureSides(Workbench& bench, const SidesPlan& plan) {
  std::array<SideSummary, kWays> sums;
  SidesResult result;
  absl::Status no_direct;
  uint64_t start = NowNs();
  for (uint64_t round = 0; round < plan.warm_up + plan.rounds || absl::Nanoseconds(NowNs() - start) < plan.at_least;
       ++round) {
    for (size_t turn = 0; turn < kWays; ++turn) {
      auto way = static_cast<Way>((turn + round) % kWays);  // nobody always goes first
      if (way == kDirectWay && !no_direct.ok()) continue;
      std::string warm = DropCache(bench.fd.get(), plan.bytes.count());
      if (result.warm_cache.empty()) result.warm_cache = warm;
      auto one = RunOne(bench, plan, way);
      if (!plan.need_direct && way == kDirectWay && ReasonOf(one.status()) == Reason::kPathUnavailable) {
        no_direct = one.status();
        continue;
      }
      if (!one.ok()) return one.status();
      if (round >= plan.warm_up) sums[way].Add(*one);
    }
  }
  result.direct = sums[kDirectWay].Side();
  result.staged = sums[kStagedWay].Side();
  result.traditional = sums[kTraditionalWay].Side(kTraditionalPath);
  if (!no_direct.ok()) result.direct.set_note("not possible: " + std::string(no_direct.message()));
  result.rounds = sums[kStagedWay].rounds();
  return result;
}

absl::Status CheckAllDirect(const PathTally& paths) {
  if (paths.path() == PathName(Path::kDirect)) return absl::OkStatus();
  std::string reason = paths.reason();
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kPathUnavailable,
                   absl::StrCat("the direct side was attested ", paths.path(), " (", ExplainReason(reason),
                                "): this run is no result"),
                   {{"path_reason", reason}});
}

std::string ExplainReason(const std::string& reason) {
  static const std::map<std::string, std::string> kMeaning = {
      {"", "no reason given"},
      {"forced", "forced: staged-only is set, see 'ubctl path get'"},
      {"below-min-direct", "below-min-direct: shorter than the node's min_direct_bytes"},
      {"unaligned", "unaligned: offset or length is no multiple of what the device needs"},
      {"fs-not-trusted", "fs-not-trusted: the file system is not on the daemon's allow-list, so libub read it itself"},
      {"fs-not-provable", "fs-not-provable: the file system does not say (STATX_DIOALIGN) that O_DIRECT is direct"},
      {"flags-changed", "flags-changed: the flags of the descriptor were changed"},
      {"direct-refused", "direct-refused: the file system refused O_DIRECT for this transfer"},
      {"no-engine", "no-engine: io_uring is not available to the daemon, so libub read it itself"},
  };
  auto meaning = kMeaning.find(reason);
  return meaning == kMeaning.end() ? reason : meaning->second;
}

}  // namespace ub::ctl
