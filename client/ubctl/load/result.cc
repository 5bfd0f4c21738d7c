#include "client/ubctl/load/result.h"

#include <algorithm>

namespace ub::ctl {
namespace {

double PerGb(uint64_t cpu_ns, uint64_t bytes) { return static_cast<double>(cpu_ns) / static_cast<double>(bytes); }

}  // namespace

void PathTally::Add(const PathShare& share) {
  auto same = std::find_if(shares_.begin(), shares_.end(), [&](const PathShare& known) {
    return known.path() == share.path() && known.reason() == share.reason();
  });
  if (same == shares_.end()) {
    shares_.push_back(share);
  } else {
    same->set_bytes(same->bytes() + share.bytes());
    same->set_transfers(same->transfers() + share.transfers());
  }
  std::stable_sort(shares_.begin(), shares_.end(),
                   [](const PathShare& a, const PathShare& b) { return a.bytes() > b.bytes(); });
}

void PathTally::Add(const Completion& completion) {
  if (!shares_.empty() && shares_.front().path() == PathName(completion.path) &&
      shares_.front().reason() == PathReasonName(completion.reason)) {
    shares_.front().set_bytes(shares_.front().bytes() + completion.bytes.count());
    shares_.front().set_transfers(shares_.front().transfers() + 1);
  } else {
    PathShare share;
    share.set_path(PathName(completion.path));
    share.set_reason(PathReasonName(completion.reason));
    share.set_bytes(completion.bytes.count());
    share.set_transfers(1);
    Add(share);
  }
  if (completion.path == Path::kDirect && !completion.registered) registered_ = false;
}

void PathTally::Merge(const PathTally& other) {
  for (const PathShare& share : other.shares_) Add(share);
  registered_ = registered_ && other.registered_;
}

uint64_t PathTally::bytes(Path path) const {
  uint64_t bytes = 0;
  for (const PathShare& share : shares_) bytes += share.path() == PathName(path) ? share.bytes() : 0;
  return bytes;
}

uint64_t PathTally::transfers(Path path) const {
  uint64_t transfers = 0;
  for (const PathShare& share : shares_) transfers += share.path() == PathName(path) ? share.transfers() : 0;
  return transfers;
}

std::string PathTally::path() const {
  bool direct = transfers(Path::kDirect) > 0;
  bool staged = transfers(Path::kStaged) > 0;
  if (direct && staged) return "direct and staged";
  return PathName(direct ? Path::kDirect : staged ? Path::kStaged : Path::kNone);
}

std::string PathTally::reason() const {
  for (const PathShare& share : shares_) {
    if (!share.reason().empty()) return share.reason();
  }
  return "";
}

void SideSummary::Add(const LoadResult& round) {
  sum_.cpu = rates_.empty() ? round.cpu : (sum_.cpu += round.cpu);
  sum_.bytes += round.bytes;
  sum_.transfers += round.transfers;
  sum_.latency.Add(round.latency);
  sum_.paths.Merge(round.paths);
  rates_.push_back(round.bytes_per_s());
}

TransferSide SideSummary::Side(const std::string& path) const {
  TransferSide side;
  side.set_rounds(rates_.size());
  if (rates_.empty() || sum_.bytes == 0) return side;
  side.set_bytes_per_s(Median(rates_));
  side.set_slowest_bytes_per_s(*std::min_element(rates_.begin(), rates_.end()));
  side.set_fastest_bytes_per_s(*std::max_element(rates_.begin(), rates_.end()));
  side.set_client_cpu_s_per_gb(PerGb(sum_.cpu.client_ns, sum_.bytes));
  if (sum_.cpu.daemon_ns.has_value()) side.set_daemon_cpu_s_per_gb(PerGb(*sum_.cpu.daemon_ns, sum_.bytes));
  if (auto total = sum_.cpu.total_ns()) side.set_cpu_s_per_gb(PerGb(*total, sum_.bytes));
  if (auto p50 = sum_.latency.Percentile(50)) side.set_p50_ns(*p50);
  if (auto p99 = sum_.latency.Percentile(99)) side.set_p99_ns(*p99);
  side.set_bytes(sum_.bytes);
  side.set_transfers(sum_.transfers);
  side.set_path(path.empty() ? sum_.paths.path() : path);
  side.set_reason(sum_.paths.reason());
  if (sum_.paths.transfers(Path::kDirect) > 0) side.set_registered(sum_.paths.registered());
  return side;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace ub::ctl
