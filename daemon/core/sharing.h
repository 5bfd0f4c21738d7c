// Shares: tickets made by a lease's owner, and redeemed by another session. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_SHARING_H_
#define UBD_CORE_SHARING_H_

#include "absl/status/statusor.h"
#include "daemon/core/broker_data.h"
#include "daemon/core/lease_life.h"

namespace ubd {

class Sharing {
 public:
  Sharing(BrokerData& data, LeaseLife& life) : data_(data), life_(life) {}
  absl::StatusOr<Ticket> Share(const ShareRequest& request);
  absl::StatusOr<Grant> Attach(SessionId session, const TicketId& ticket);

 private:
  BrokerData& data_;
  LeaseLife& life_;
};

}  // namespace ubd

#endif  // UBD_CORE_SHARING_H_
