// The Broker without its lock: puts its parts together. Sessions and operator's orders are handled here, everything
// else by the part that it is about. Every operation ends with Settle. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_BROKER_STATE_H_
#define UBD_CORE_BROKER_STATE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/admission.h"
#include "daemon/core/broker_data.h"
#include "daemon/core/granter.h"
#include "daemon/core/lease_life.h"
#include "daemon/core/lister.h"
#include "daemon/core/memory_news.h"
#include "daemon/core/sharing.h"

namespace ubd {

class BrokerState {
 public:
  BrokerState(const std::vector<PoolSpec>& pools, const BrokerLimits& limits, const BrokerDeps& deps)
      : data(pools, limits, deps) {}

  void OpenSession(const SessionFacts& facts);
  void CloseSession(SessionId session, SessionEnd end);
  absl::Status Release(SessionId session, LeaseId lease);
  void FailDelivery(SessionId session, LeaseId lease);
  absl::StatusOr<std::vector<GrantedBlock>> Pin(SessionId session, LeaseId lease, Access needed);
  absl::StatusOr<std::vector<Piece>> PinRange(const RangeRequest& request);
  absl::StatusOr<Grant> GrantOwn(SessionId session, BlockId block, Bytes bytes, Access access);
  absl::Status Revoke(const Viewer& viewer, LeaseId lease, const std::string& why);
  uint64_t SetDrain(bool drain);
  void Stop(const std::string& why);
  void Tick();

  // Serves whom it can. True: the earliest deadline is now earlier than it was after the last call.
  bool Settle();

  BrokerData data;
  LeaseLife life{data};
  Admission admission{data, life};
  Granter granter{data, life, admission};
  Sharing sharing{data, life};
  MemoryNews news{data};
  Lister lister{data};
  std::function<void()> poke;  // OnDeadlineChange

 private:
  std::optional<MonoTime> announced_;
};

}  // namespace ubd

#endif  // UBD_CORE_BROKER_STATE_H_
