// Who may ask for what: every check that a request must pass before it is served or queued. What can never be met is
// refused for good, what does not fit a quota now is refused for now. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_ADMISSION_H_
#define UBD_CORE_ADMISSION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/broker_data.h"
#include "daemon/core/lease_life.h"

namespace ubd {

class Admission {
 public:
  Admission(BrokerData& data, LeaseLife& life) : data_(data), life_(life) {}

  // The request as a waiter without an id, in whole blocks; or why it is refused. May recall idle leases of the caller
  // to make room in its quota.
  absl::StatusOr<Waiter> Admit(const AcquireRequest& request, const SessionRecord& session);
  // The same checks for a client's own memory, which needs no block of a pool.
  absl::Status AdmitOwn(const SessionRecord& session, Bytes bytes);
  // A retry must ask for what the first call asked for.
  absl::Status SameRequest(const AcquireRequest& request, PoolId pool, Bytes bytes);
  // May the caller wait?
  absl::Status MayWait(const Waiter& waiter) const;
  // Until when a request that starts to wait now does.
  MonoTime DeadlineFor(absl::Duration wait) const;
  // OK, or the quota that does not hold `asked` more. Idle leases of the same owner are recalled first.
  absl::Status MakeRoomInQuota(SessionId session, Uid uid, Bytes asked);

 private:
  absl::Status CheckQuotaHolds(Bytes bytes, Uid uid) const;
  absl::Status CheckSize(const PoolState& pool, const AcquireRequest& request, Uid uid) const;

  BrokerData& data_;
  LeaseLife& life_;
};

}  // namespace ubd

#endif  // UBD_CORE_ADMISSION_H_
