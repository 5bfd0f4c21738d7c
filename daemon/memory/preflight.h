// Decides before anything is allocated whether all pools fit, and what each one gets. Looks at huge pages (free minus
// reserved, per node where bound), available memory, every control group above the process, locked memory, file
// descriptors and mappings; all pools are added up. A pool that does not fit is RESOURCE_EXHAUSTED/POOL_DOES_NOT_FIT
// with details pool, wanted, free, unit, node, page_size, limit, or is made smaller where its config allows. Pure but
// for the files it reads.
#ifndef UBD_MEMORY_PREFLIGHT_H_
#define UBD_MEMORY_PREFLIGHT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/memory/memory.h"
#include "daemon/memory/process_limits.h"
#include "daemon/memory/system_files.h"

namespace ubd {

// What one pool gets.
struct PoolPlan {
  HostPoolConfig config;  // as asked for
  Bytes page_size;
  std::string page_reason;
  uint32_t blocks = 0;
  uint32_t reserve = 0;
  bool lock = false;      // mlock its (small) pages
  std::string locked;     // "yes", or "no: why"
  std::string shrunk;     // empty, or why it is smaller
  bool only_node = true;  // the machine has one node, so that a refused mbind changes nothing
};

absl::StatusOr<std::vector<PoolPlan>> PlanPools(const std::vector<HostPoolConfig>& pools, const SystemFiles& files,
                                                const ProcessLimits& limits);

// The error for a pool that does not fit, also when allocation fails against the preflight's word (somebody else was
// faster).
struct Shortage {
  uint64_t wanted = 0;
  uint64_t free = 0;
  std::string unit = "bytes";
  std::string limit;
  std::string cure;
};
absl::Status DoesNotFit(const HostPoolConfig& pool, Bytes page_size, const Shortage& shortage);

}  // namespace ubd

#endif  // UBD_MEMORY_PREFLIGHT_H_
