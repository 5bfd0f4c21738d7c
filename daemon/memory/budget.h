// Everything that a pool's backings draw from: huge pages, available memory, control groups, locked memory,
// descriptors, mappings. Each is read once; a pool that fits takes its part, so that the next pool sees what is left.
// Not thread-safe: one preflight owns it.
#ifndef UBD_MEMORY_BUDGET_H_
#define UBD_MEMORY_BUDGET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/memory/cgroup_limits.h"
#include "daemon/memory/memory.h"
#include "daemon/memory/process_limits.h"
#include "daemon/memory/system_files.h"

namespace ubd {

struct Budget {
  std::string limit;  // the file or limit that says so
  std::string unit;   // "bytes" or what is counted
  uint64_t left = 0;
  // What to do so that `missing` more would fit.
  std::function<std::string(uint64_t missing)> cure;
};

struct Draw {
  Budget* budget;
  uint64_t per_backing;
};

class Budgets {
 public:
  Budgets(const SystemFiles& files, const ProcessLimits& limits) : files_(files), limits_(limits) {}

  // What one backing of this pool draws from, with pages of `page_size`. Locked memory is in it only where locking is
  // required.
  std::vector<Draw> DrawsFor(const HostPoolConfig& pool, Bytes page_size);
  // The budget of locked memory.
  Budget* Locked();

 private:
  Budget* Get(const std::string& limit, const std::string& unit, uint64_t left,
              std::function<std::string(uint64_t)> cure);
  void AddHugePages(const HostPoolConfig& pool, Bytes page_size, std::vector<Draw>& draws);
  void AddSmallPages(const HostPoolConfig& pool, std::vector<Draw>& draws);
  void AddGroups(const std::vector<CgroupLimit>& groups, uint64_t bytes, std::vector<Draw>& draws);
  void AddProcess(std::vector<Draw>& draws);

  const SystemFiles& files_;
  const ProcessLimits& limits_;
  std::map<std::string, Budget> budgets_;  // by limit; nodes do not move
};

// How many backings all draws allow, and which draw allows the fewest (null without draws).
struct Fit {
  uint64_t backings = UINT64_MAX;
  const Draw* tightest = nullptr;
};
Fit FitOf(const std::vector<Draw>& draws);
// Takes `backings` out of every budget. REQUIRES: they fit.
void Claim(const std::vector<Draw>& draws, uint64_t backings);

}  // namespace ubd

#endif  // UBD_MEMORY_BUDGET_H_
