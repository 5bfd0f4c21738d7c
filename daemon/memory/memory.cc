#include "daemon/memory/memory.h"

#include "daemon/memory/host_memory.h"

namespace ubd {

absl::StatusOr<std::unique_ptr<Memory>> Memory::Create(const std::vector<HostPoolConfig>& pools,
                                                       const BootProgress& progress) {
  SystemFiles files;
  return CreateHostMemory(pools, progress, {files, RaiseProcessLimits(files), ""});
}

}  // namespace ubd
