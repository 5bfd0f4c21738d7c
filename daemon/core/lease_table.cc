#include "daemon/core/lease_table.h"

#include <algorithm>

namespace ubd {

std::vector<const Lease*> LeaseTable::All() const {
  std::vector<const Lease*> all;
  all.reserve(leases_.size());
  for (const auto& [id, lease] : leases_) all.push_back(lease.get());
  std::sort(all.begin(), all.end(), [](const Lease* a, const Lease* b) { return a->id < b->id; });
  return all;
}

}  // namespace ubd
