// Which way a transfer goes, and why: a pure function of policy, file and transfer. A fallback is never silent, and
// direct-only never falls back.
#ifndef UBD_ENGINE_PATH_CHOICE_H_
#define UBD_ENGINE_PATH_CHOICE_H_

#include <cstdint>

#include "daemon/engine/file_target.h"
#include "proto/wire/queue_layout.h"

namespace ubd {

struct PathChoice {
  ub::wire::Path path = ub::wire::Path::kNone;  // kNone: refused (direct-only), `reason` says why
  ub::wire::PathReason reason = ub::wire::PathReason::kNone;
};

// The first that is not kDefault; the node's is never kDefault.
ub::wire::PathPolicy EffectivePolicy(ub::wire::PathPolicy transfer, ub::wire::PathPolicy queue,
                                     ub::wire::PathPolicy node);

struct PathQuestion {
  ub::wire::PathPolicy policy;
  uint64_t file_offset = 0;
  uint64_t memory_offset = 0;  // of the first byte in its block; blocks are page-aligned
  uint64_t length = 0;
  uint64_t min_direct_bytes = 0;
  bool flags_changed = false;
};
PathChoice ChoosePath(const PathQuestion& question, const FileFacts& file);

}  // namespace ubd

#endif  // UBD_ENGINE_PATH_CHOICE_H_
