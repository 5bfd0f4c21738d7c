#include "daemon/rpc/watch.h"

namespace ubd {

bool ConcernsAll(EventKind kind) {
  return kind == EventKind::kDraining || kind == EventKind::kResumed || kind == EventKind::kStopping;
}

}  // namespace ubd
