// What happens to leases, sessions and blocks, in order: the one stream that audit log, metrics and watchers feed on.
#ifndef UBD_CORE_EVENT_H_
#define UBD_CORE_EVENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/core/block.h"

namespace ubd {

// Same order and meaning as ub.v1.Event.Kind, from GRANTED on.
enum class EventKind {
  kGranted = 2,
  kReleased,
  kShared,
  kAttached,
  kDetached,
  kRecalled,
  kRevoked,
  kExpired,
  kReclaimed,
  kTampered,
  kRecycled,
  kSessionOpened,
  kSessionClosed,
  kDraining,
  kResumed,
  kStopping,
  kOwnerReleased,
};

// "granted", "released", … as in the audit log.
const char* EventKindName(EventKind kind);

struct Event {
  EventKind kind;
  std::optional<LeaseId> lease;
  std::optional<SessionId> session;  // whose stream it belongs to (Broker.Watch)
  std::optional<Uid> uid;
  std::optional<int32_t> pid;
  std::string pool;
  Bytes bytes;
  std::string text;
  absl::Duration waited;  // kGranted: time from request to grant
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Called under the Broker's lock, in the order of things: must not block and must not call the Broker.
  virtual void OnEvent(const Event& event) = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_EVENT_H_
