// What a transfer is asked for, and what became of it. Plain values.
#ifndef UB_TRANSFER_H_
#define UB_TRANSFER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ub/queue_layout.h"
#include "ub/queue_names.h"
#include "ub/units.h"

namespace ub {

using wire::MemoryKind;
using wire::Path;
using wire::PathPolicy;
using wire::PathReason;

struct TransferOptions {
  PathPolicy path = PathPolicy::kDefault;  // as the queue was opened, else as the node is set
  // From when the daemon takes it. Zero: none. The answer comes on time (TRANSFER_DEADLINE); the memory stays in use
  // until the device is done with it.
  absl::Duration deadline = absl::ZeroDuration();
};

struct Completion {
  uint64_t tag = 0;  // as submitted
  absl::Status
      status;   // typed: READ_ONLY, OUT_OF_RANGE, PATH_UNAVAILABLE (detail path_reason), NO_SPACE, DEVICE_ERROR, ...
  Bytes bytes;  // moved; fewer than asked for where the file ended
  Path path = Path::kNone;
  PathReason reason = PathReason::kNone;  // why it was staged
  MemoryKind from = MemoryKind::kNone;
  MemoryKind to = MemoryKind::kNone;
  bool registered = false;  // by memory that the device knew before
  absl::Duration device_time;
  // The caller has its answer (a deadline), but the memory is still in use: one more completion with this tag will
  // come.
  bool more = false;
};

// "direct", "staged", "none" / "" or why: "unaligned", "below-min-direct", ... / "host", "file", ...
using wire::MemoryKindName;
using wire::PathName;
using wire::PathReasonName;

}  // namespace ub

#endif  // UB_TRANSFER_H_
