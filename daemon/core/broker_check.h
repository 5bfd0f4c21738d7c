// Recomputes everything that the Broker keeps twice: sums, counts, cross-references. For tests; costs a walk over all
// of it.
#ifndef UBD_CORE_BROKER_CHECK_H_
#define UBD_CORE_BROKER_CHECK_H_

#include "absl/status/status.h"
#include "daemon/core/broker_data.h"

namespace ubd {

absl::Status CheckData(const BrokerData& data);

}  // namespace ubd

#endif  // UBD_CORE_BROKER_CHECK_H_
