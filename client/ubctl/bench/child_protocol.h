// How bench children report to their parent: one packet of plain numbers, or a failure's text. The socket is Child's.
#ifndef UB_UBCTL_BENCH_CHILD_PROTOCOL_H_
#define UB_UBCTL_BENCH_CHILD_PROTOCOL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ub::ctl {

inline constexpr size_t kMostReported = 4096;

// At most kMostReported values.
absl::Status ReportValues(int socket, const std::vector<uint64_t>& values);
absl::Status ReportFailure(int socket, const absl::Status& status);
// Waits for either.
absl::StatusOr<std::vector<uint64_t>> AwaitReport(int socket);
// Returns when the parent hangs up.
void AwaitHangUp(int socket);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_CHILD_PROTOCOL_H_
