// Who is served, and when: the queues of all pools, first come, first served in each; what is done so that the head of
// a queue gets its memory; and what becomes of those who give up, retry, or wait too long. Not thread-safe: under the
// Broker's lock.
#ifndef UBD_CORE_GRANTER_H_
#define UBD_CORE_GRANTER_H_

#include <optional>

#include "daemon/core/admission.h"
#include "daemon/core/broker_data.h"
#include "daemon/core/lease_life.h"

namespace ubd {

class Granter {
 public:
  Granter(BrokerData& data, LeaseLife& life, Admission& admission) : data_(data), life_(life), admission_(admission) {}

  ClaimId Acquire(const AcquireRequest& request, GrantCallback done);
  bool Abandon(SessionId session, RequestId request, std::optional<ClaimId> claim);
  // Ends waits with `why`: one session's, one that was too long, all.
  void EndWaitsOf(SessionRecord& session, const absl::Status& why);
  void TimeOut(PoolId pool, WaiterId waiter);
  void EndAllWaits(const absl::Status& why);
  // Takes back all that is idle in clients' caches.
  void RecallAll();
  // Serves every pool where something changed, and lets go of pressure when nobody waits. At the end of every
  // operation.
  void Settle();

 private:
  void Start(Waiter waiter, SessionRecord& session, ClaimId claim);
  void Retry(const AcquireRequest& request, SessionRecord& session, RequestRecord& known, ClaimId claim,
             GrantCallback done);
  void Enqueue(Waiter waiter, SessionRecord& session, ClaimId claim);
  // Out of the queue and out of all books.
  std::optional<Waiter> Dequeue(PoolId pool, WaiterId id);
  void Refuse(PoolId pool, WaiterId id, const absl::Status& why);
  void GrantTo(Waiter waiter, ClaimId claim);
  // Could the pool serve `blocks` more, behind those who wait, without anybody releasing anything?
  bool OnItsWay(const PoolState& pool, uint32_t blocks) const;
  void Serve(PoolState& pool);
  void MakeRoom(PoolState& pool, const Waiter& head);
  void Recall(PoolState& pool, int64_t blocks);

  BrokerData& data_;
  LeaseLife& life_;
  Admission& admission_;
  ClaimId last_claim_ = 0;
  WaiterId last_waiter_ = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_GRANTER_H_
