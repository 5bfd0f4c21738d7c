// Makes all backings of all pools at boot, on as many threads as there are cores: first every memfd and mapping (short,
// each takes the process's map lock for writing), then the pages (long, in parallel under that lock's reading side).
#ifndef UBD_MEMORY_BOOT_H_
#define UBD_MEMORY_BOOT_H_

#include <vector>

#include "absl/status/status.h"
#include "daemon/memory/memory.h"
#include "daemon/memory/pool_memory.h"
#include "daemon/memory/registry.h"
#include "daemon/memory/system_files.h"

namespace ubd {

// Fills every block and every reserve, and gives every backing its slot. On failure all that was made is released, and
// what ran out is RESOURCE_EXHAUSTED/POOL_DOES_NOT_FIT.
absl::Status FillPools(const std::vector<PoolMemory*>& pools, Registry& registry, const SystemFiles& files,
                       const BootProgress& progress);

}  // namespace ubd

#endif  // UBD_MEMORY_BOOT_H_
