// What the kernel allows this process: descriptors, locked memory, mappings. A plain value, so that tests can make
// their own.
#ifndef UBD_MEMORY_PROCESS_LIMITS_H_
#define UBD_MEMORY_PROCESS_LIMITS_H_

#include <cstdint>

#include "daemon/memory/system_files.h"

namespace ubd {

struct ProcessLimits {
  uint64_t max_fds = 0;
  uint64_t open_fds = 0;
  uint64_t max_locked = 0;  // bytes; UINT64_MAX: no limit (or CAP_IPC_LOCK)
  uint64_t locked = 0;      // bytes already locked
  uint64_t max_maps = 0;    // vm.max_map_count; UINT64_MAX where it cannot be read
};

// Raises the soft limits on descriptors and locked memory to the hard ones, then reads all. Root and CAP_IPC_LOCK lift
// the lock limit.
ProcessLimits RaiseProcessLimits(const SystemFiles& files);

}  // namespace ubd

#endif  // UBD_MEMORY_PROCESS_LIMITS_H_
