// The implementation of Memory (memory.h), with what it asks of the machine made replaceable for tests.
#ifndef UBD_MEMORY_HOST_MEMORY_H_
#define UBD_MEMORY_HOST_MEMORY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/memory/memory.h"
#include "daemon/memory/process_limits.h"
#include "daemon/memory/system_files.h"

namespace ubd {

struct HostMemoryDeps {
  SystemFiles files;
  ProcessLimits limits;
  // Not empty: why the kernel's reuse tests are not to be trusted, as if the probe had found it.
  std::string distrust;
};

absl::StatusOr<std::unique_ptr<Memory>> CreateHostMemory(const std::vector<HostPoolConfig>& pools,
                                                         const BootProgress& progress, const HostMemoryDeps& deps);

}  // namespace ubd

#endif  // UBD_MEMORY_HOST_MEMORY_H_
