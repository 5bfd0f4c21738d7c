// Saying no on a lifeline, with a typed reason. Thread-safe: no state.
#ifndef UBD_SESSION_REFUSAL_H_
#define UBD_SESSION_REFUSAL_H_

#include "absl/status/status.h"

namespace ubd {

// Sends a Refuse frame, best effort, and shuts the socket down. Never blocks. The caller closes it.
void SendRefuse(int lifeline, const absl::Status& why);

// What a client of protocol `theirs` is told: both versions, and which side must be replaced or restarted.
absl::Status VersionRefusal(uint32_t theirs);

// This process has no descriptor for another client.
absl::Status NoRoomRefusal();
absl::Status StoppingRefusal();

}  // namespace ubd

#endif  // UBD_SESSION_REFUSAL_H_
