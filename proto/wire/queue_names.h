// Names and typed errors for what stands in a completion, the same on both sides. Thread-safe.
#ifndef UB_WIRE_QUEUE_NAMES_H_
#define UB_WIRE_QUEUE_NAMES_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "ub/queue_layout.h"

namespace ub::wire {

// "direct", "staged", "none"; "?" for a number that this build does not know, in all four.
const char* PathName(Path path);
// "" for kNone, else "forced", "below-min-direct", "unaligned", "fs-not-trusted", "fs-not-provable", "flags-changed",
// "direct-refused", "no-engine".
const char* PathReasonName(PathReason reason);
// "default", "direct-only", "prefer-direct", "staged-only".
const char* PathPolicyName(PathPolicy policy);
std::optional<PathPolicy> PathPolicyFromName(std::string_view name);
// "none", "host", "cuda", "file".
const char* MemoryKindName(MemoryKind kind);

// The status of a completion: code, Reason and text with cause and cure; PATH_UNAVAILABLE carries `path_reason`,
// DEVICE_ERROR `errno`.
absl::Status TransferStatus(const CompletionEntry& completion);

}  // namespace ub::wire

#endif  // UB_WIRE_QUEUE_NAMES_H_
