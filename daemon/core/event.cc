#include "daemon/core/event.h"

namespace ubd {

const char* EventKindName(EventKind kind) {
  switch (kind) {
    case EventKind::kGranted:
      return "granted";
    case EventKind::kReleased:
      return "released";
    case EventKind::kShared:
      return "shared";
    case EventKind::kAttached:
      return "attached";
    case EventKind::kDetached:
      return "detached";
    case EventKind::kRecalled:
      return "recalled";
    case EventKind::kRevoked:
      return "revoked";
    case EventKind::kExpired:
      return "expired";
    case EventKind::kReclaimed:
      return "reclaimed";
    case EventKind::kTampered:
      return "tampered";
    case EventKind::kRecycled:
      return "recycled";
    case EventKind::kSessionOpened:
      return "session_opened";
    case EventKind::kSessionClosed:
      return "session_closed";
    case EventKind::kDraining:
      return "draining";
    case EventKind::kResumed:
      return "resumed";
    case EventKind::kStopping:
      return "stopping";
    case EventKind::kOwnerReleased:
      return "owner_released";
  }
  return "unknown";
}

}  // namespace ubd
