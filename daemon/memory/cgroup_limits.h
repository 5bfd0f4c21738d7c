// Limits that control groups put on this process's memory. Every ancestor counts, in version 2 (memory.max,
// memory.high), version 1 (memory.limit_in_bytes) and mixtures of both; a page fault beyond one of them is answered by
// the OOM killer, not by an error, so they are looked at before anything is allocated. Groups above the process's own
// namespace cannot be seen. Thread-safe.
#ifndef UBD_MEMORY_CGROUP_LIMITS_H_
#define UBD_MEMORY_CGROUP_LIMITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/memory/system_files.h"
#include "proto/wire/units.h"

namespace ubd {

struct CgroupLimit {
  std::string file;  // the limit
  uint64_t limit = 0;
  uint64_t free = 0;  // limit minus use; page cache that the kernel can drop counts as free
};

// Limits on memory of small pages.
std::vector<CgroupLimit> MemoryLimits(const SystemFiles& files);
// Limits on huge pages of this size, reservations included; and those on memory too where the kernel charges huge pages
// there.
std::vector<CgroupLimit> HugePageLimits(const SystemFiles& files, ub::Bytes page_size);

}  // namespace ubd

#endif  // UBD_MEMORY_CGROUP_LIMITS_H_
