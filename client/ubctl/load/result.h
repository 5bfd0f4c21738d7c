// What reading a file in one way came to. Plain values.
#ifndef UB_UBCTL_LOAD_RESULT_H_
#define UB_UBCTL_LOAD_RESULT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/ubctl/bench/samples.h"
#include "client/ubctl/load/cpu_time.h"
#include "client/ubctl/report.pb.h"
#include "ub/queue.h"
#include "ub/transfer.h"

namespace ub::ctl {

// Bytes and transfers by the path that was attested.
class PathTally {
 public:
  void Add(const Completion& completion);
  const std::vector<PathShare>& shares() const { return shares_; }  // most bytes first
  uint64_t bytes(Path path) const;
  uint64_t transfers(Path path) const;
  // "direct", "staged", "direct and staged", "none"; and the reason of the largest staged share.
  std::string path() const;
  std::string reason() const;
  // All direct transfers used memory that the device knew before.
  bool registered() const { return registered_; }
  void Merge(const PathTally& other);

 private:
  void Add(const PathShare& share);
  std::vector<PathShare> shares_;
  bool registered_ = true;
};

struct LoadResult {
  uint64_t bytes = 0;
  uint64_t transfers = 0;
  uint64_t ns = 0;
  Samples latency;  // of one transfer, submit to completion seen
  PathTally paths;
  CpuTime cpu;
  Queue::Stats queue;  // of reads through a queue

  double bytes_per_s() const { return ns == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(ns); }
};

// The rounds of one way, summed up as its side of a report.
class SideSummary {
 public:
  void Add(const LoadResult& round);
  uint64_t rounds() const { return rates_.size(); }
  // `path`: what to say instead of what was attested, for ways that ubd has no part in.
  TransferSide Side(const std::string& path = "") const;

 private:
  std::vector<double> rates_;
  LoadResult sum_;
};

// The middle one, or the mean of the two; 0 of none.
double Median(std::vector<double> values);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_RESULT_H_
