// Listings, cut to what their viewer may see. Admins see everything. Others see the sessions of their own uid, the
// leases that these own or are attached to, and all pool figures. Of a foreign owner they see nothing; of a foreign
// share on their own lease its uid and access, which the owner chose itself. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_LISTER_H_
#define UBD_CORE_LISTER_H_

#include <vector>

#include "daemon/core/broker_data.h"

namespace ubd {

class Lister {
 public:
  explicit Lister(const BrokerData& data) : data_(data) {}
  std::vector<PoolListing> Pools() const;
  std::vector<BlockListing> Blocks(const Viewer& viewer) const;
  std::vector<LeaseListing> Leases(const Viewer& viewer) const;
  std::vector<SessionListing> Sessions(const Viewer& viewer) const;
  BrokerTotals Totals() const;

 private:
  BlockListing Listed(const Viewer& viewer, const Block& block, const std::string& pool) const;
  static bool MaySee(const Viewer& viewer, const Lease& lease);
  static std::vector<HolderListing> Holders(const Viewer& viewer, const Lease& lease);

  const BrokerData& data_;
};

}  // namespace ubd

#endif  // UBD_CORE_LISTER_H_
