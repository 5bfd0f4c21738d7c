// Makes an io_uring, or says why the kernel allows none and how to allow it.
#ifndef UBD_ENGINE_RING_SETUP_H_
#define UBD_ENGINE_RING_SETUP_H_

#include <liburing.h>

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/memory/system_files.h"

namespace ubd {

// A ring that takes `entries` submissions at once and holds at least as many completions. UNAVAILABLE otherwise.
absl::Status SetUpRing(io_uring& ring, uint32_t entries);

// The text for a refusal of io_uring_setup.
absl::Status ExplainNoRing(int error, const SystemFiles& files);

}  // namespace ubd

#endif  // UBD_ENGINE_RING_SETUP_H_
