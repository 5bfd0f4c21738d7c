// Which page size a pool gets. "auto" takes 2 MiB pages when enough are free for blocks and reserve, else small pages,
// and says why; a size that was asked for by name is never replaced by another. Not thread-safe.
#ifndef UBD_MEMORY_PAGE_SIZE_H_
#define UBD_MEMORY_PAGE_SIZE_H_

#include <string>

#include "absl/status/status.h"
#include "daemon/memory/budget.h"
#include "daemon/memory/memory.h"
#include "daemon/memory/system_files.h"

namespace ubd {

struct PageChoice {
  Bytes page_size;
  std::string reason;
};

// The kernel's own page size: 4 KiB on most machines.
Bytes SmallPageSize();

// INVALID_ARGUMENT/BAD_CONFIG when the machine has no such pages or the blocks are no multiple of them.
absl::Status CheckPageSize(const SystemFiles& files, const HostPoolConfig& pool);

PageChoice ChoosePageSize(const HostPoolConfig& pool, Budgets& budgets);

}  // namespace ubd

#endif  // UBD_MEMORY_PAGE_SIZE_H_
