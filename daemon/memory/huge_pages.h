// Huge pages: which sizes the kernel has, and how many are really free. Thread-safe.
#ifndef UBD_MEMORY_HUGE_PAGES_H_
#define UBD_MEMORY_HUGE_PAGES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/memory/system_files.h"
#include "proto/wire/units.h"

namespace ubd {

struct HugePageCounts {
  uint64_t total = 0;
  uint64_t free = 0;  // not in use and not reserved by anybody's mapping
  std::string file;   // where `free` was read
};

// None where the kernel has no pages of this size (or no such node). Surplus pages (overcommit) do not count: they may
// be refused later.
std::optional<HugePageCounts> ReadHugePages(const SystemFiles& files, ub::Bytes page_size, std::optional<int> node);

// What the operator must do to have `pages` huge pages in all.
std::string HugePageCure(ub::Bytes page_size, std::optional<int> node, uint64_t pages);

}  // namespace ubd

#endif  // UBD_MEMORY_HUGE_PAGES_H_
