// Everything that the Broker remembers, in one place, for the classes that each do one part of its work: Admission (who
// may ask), Granter (who is served), LeaseLife (how a lease ends), Sharing, Lister. All of it is under the Broker's
// lock.
#ifndef UBD_CORE_BROKER_DATA_H_
#define UBD_CORE_BROKER_DATA_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/core/broker.h"
#include "daemon/core/deadlines.h"
#include "daemon/core/lease_table.h"
#include "daemon/core/outbox.h"
#include "daemon/core/pool.h"
#include "daemon/core/quota.h"
#include "daemon/core/recall.h"
#include "daemon/core/session_table.h"
#include "daemon/core/ticket_book.h"
#include "daemon/core/wait_queue.h"

namespace ubd {

struct PoolState {
  Pool blocks;
  WaitQueue queue;
  uint64_t retired = 0;  // old backings that somebody still holds
  uint64_t leases = 0;
  bool dirty = false;  // something changed for those who wait
};

class BrokerData {
 public:
  BrokerData(const std::vector<PoolSpec>& specs, const BrokerLimits& given, const BrokerDeps& given_deps);
  BrokerData(const BrokerData&) = delete;
  BrokerData& operator=(const BrokerData&) = delete;

  // Not for kOwnPool.
  PoolState& PoolOf(PoolId id) { return pools[id.value()]; }
  const std::string& PoolNameOf(const Lease& lease) const;
  // One of the lease's blocks.
  const Block& BlockOf(const Lease& lease, BlockId id) const;
  // Null: no such block.
  PoolState* PoolOf(BlockId id);
  // Empty name: the first. Null: no such pool.
  PoolState* FindPool(const std::string& name);
  MonoTime Now() const { return deps.clock.Now(); }

  // Its client has it in its cache, and nothing is in flight on it. A hint.
  bool IsIdle(const Lease& lease) const;

  // What happened to a lease, as seen by one of its holders.
  void Emit(EventKind kind, const Lease& lease, const Holder& holder, std::string text, absl::Duration waited = {});
  void Emit(const Event& event) { deps.observer.OnEvent(event); }

  // Clients feel it before the Broker looks at a word (proto/wire/lease_word.h): no client can idle one unseen.
  void RaisePressure();
  // Once nobody waits any more.
  void LowerPressure();

  const BrokerDeps deps;
  BrokerLimits limits;
  std::vector<PoolState> pools;
  SessionTable sessions;
  LeaseTable leases;
  absl::flat_hash_map<BlockId, LeaseId> own;  // clients' own memory, until it is dropped
  UbAddr next_own;                            // where the next such lease lies
  QuotaBook quotas;
  RecallBook recalls;
  TicketBook tickets;
  Deadlines deadlines;
  Outbox outbox;
  uint64_t waiters = 0;  // in all queues
  uint64_t reclaimed_sessions = 0;
  uint64_t reclaimed_leases = 0;
  bool pressure = false;
  bool draining = false;
  bool stopping = false;
  std::string why_stopping;
};

}  // namespace ubd

#endif  // UBD_CORE_BROKER_DATA_H_
