// The Broker's errors, each with its cause, its cure and the figures behind it. They count what others hold but never
// name them.
#ifndef UBD_CORE_REFUSALS_H_
#define UBD_CORE_REFUSALS_H_

#include <string>

#include "absl/status/status.h"
#include "daemon/core/broker_data.h"

namespace ubd::refusal {

absl::Status NoSuchLease();
absl::Status StaleGeneration();
absl::Status ReadOnly();
absl::Status OutOfRange(Bytes offset, Bytes length, Bytes size);
// A client's own memory.
absl::Status NotShareable();
absl::Status TooManyOwn(uint32_t limit);
absl::Status NoSuchPool(const std::string& name);
absl::Status NoSuchTicket();
absl::Status SessionEnded();
absl::Status Superseded();
absl::Status Abandoned();
absl::Status Draining();
absl::Status Stopping(const std::string& why);
absl::Status BadField(const std::string& field, const std::string& text);
absl::Status LargerThanPool(const PoolState& pool, Bytes asked);
absl::Status LargerThanQuota(const OverQuota& over);
absl::Status QuotaExceeded(const OverQuota& over);
absl::Status TooManyWaiters(uint32_t limit);
absl::Status TooManyLeases(uint32_t limit);
absl::Status TooManyTickets();
// Not enough free, and none to come soon.
absl::Status PoolEmpty(const PoolState& pool, Bytes asked);
absl::Status WaitTimeout(const PoolState& pool, Bytes asked, absl::Duration waited);

}  // namespace ubd::refusal

#endif  // UBD_CORE_REFUSALS_H_
