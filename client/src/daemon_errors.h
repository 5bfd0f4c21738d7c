// Errors that several parts of libub give about the daemon, and errors as they come over the lifeline. Thread-safe: no
// state.
#ifndef UB_SRC_DAEMON_ERRORS_H_
#define UB_SRC_DAEMON_ERRORS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace ub {

// UNAVAILABLE/SESSION_ENDED.
absl::Status SessionEnded();
// UNAVAILABLE/NOT_ANSWERING.
absl::Status NotAnswering();
// INVALID_ARGUMENT/MALFORMED_FRAME.
absl::Status MalformedLifeline(std::string_view what);
// FAILED_PRECONDITION/VERSION_MISMATCH: both versions, and who must be replaced and restarted.
absl::Status VersionMismatch(uint32_t daemon_protocol);
// Code, reason and text of a Refuse or GrantFailed frame. Never OK.
absl::Status FromWire(int32_t code, std::string_view reason, std::string_view text);

}  // namespace ub

#endif  // UB_SRC_DAEMON_ERRORS_H_
