// Typed errors. Every refusal by ubd or libub is an absl::Status with a gRPC code, a text that names cause and cure, a
// Reason for programs, and details as name/value pairs (sizes in bytes, times in ms). All functions are thread-safe.
#ifndef UB_WIRE_ERROR_H_
#define UB_WIRE_ERROR_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace ub {

// Why a call failed. The name on the wire is the enumerator without k, in capitals: kQuotaExceeded is "QUOTA_EXCEEDED".
enum class Reason {
  kNone = 0,
  // RESOURCE_EXHAUSTED
  kPoolEmpty,        // no free block now; details: free, asked, leased, retired
  kQuotaExceeded,    // details: limit, used, asked
  kTooManySessions,  // details: limit
  kTooManyWaiters,   // details: limit
  kTooManyLeases,    // details: limit
  kDaemonFdLimit,    // the daemon has no file descriptors left
  kClientFdLimit,    // the client could not take the fds (MSG_CTRUNC)
  kTooManyQueues,    // details: limit
  kTooManyFiles,     // details: limit
  kQueueFull,        // the ring has no room for so many entries; read completions first
  kNoSpace,          // the target's file system is full
  kPoolDoesNotFit,   // boot: details: wanted, free, node, page_size
  // INVALID_ARGUMENT
  kMissingField,      // details: field
  kBadField,          // details: field
  kNeverSatisfiable,  // larger than the pool or the quota; details: asked, limit
  kBadConfig,
  kBadEntry,   // a submission that no daemon could understand
  kBadMemory,  // memory that cannot be registered; details: field
  kBadFile,    // a descriptor that cannot be a target
  kOverlap,    // source and target of a COPY share bytes
  // OUT_OF_RANGE
  kOutOfRange,  // beyond the end of a lease; details: offset, length, size
  // NOT_FOUND
  kNoSuchLease,  // absent, or somebody else's: not told apart
  kNoSuchPool,
  kNoSuchTicket,
  kNoSuchQueue,
  kNoSuchFile,
  kNoSuchOffer,     // the Offer frame of that number did not come, or was used
  kNoSuchTransfer,  // not in flight (any more)
  // FAILED_PRECONDITION
  kVersionMismatch,  // details: client, daemon, remedy
  kStaleGeneration,
  kForked,  // used in a child after fork: connect anew there
  kReadOnly,
  kAlreadyRunning,  // another ubd owns the runtime directory; details: pid
  kForeignFile,     // something that is not ours lies at a socket path
  kNotCacheable,
  kNotShareable,     // a client's own memory: its owner passes the memfd on by itself
  kInUse,            // the other owner of it must let go first
  kPathUnavailable,  // direct-only, and direct is impossible; details: path_reason
  kQueueBroken,      // the client wrote what cannot be into its ring: open another
  // UNAUTHENTICATED / PERMISSION_DENIED
  kNoSession,  // token missing, unknown, or of another uid
  kNotAdmin,
  kSocketAccess,  // the socket's mode or group keeps this user out
  // UNAVAILABLE
  kNotRunning,    // nobody listens
  kNotAnswering,  // somebody listens but does not answer
  kDraining,
  kStopping,
  kSessionEnded,  // the session is gone: the daemon closed or restarted
  // ABORTED / CANCELLED / DEADLINE_EXCEEDED / DATA_LOSS / INTERNAL
  kSuperseded,  // a retry with the same request id took over
  kRevoked,
  kExpired,
  kWaitTimeout,
  kTransferDeadline,  // the transfer goes on; its memory is in use until it ends
  kCancelled,
  kInDoubt,      // whether the transfer happened is unknown
  kDeviceError,  // details: errno
  kMemoryTampered,
  kKernelRefused,  // a system call failed; details: call, errno
  kMalformedFrame,
};

using ErrorDetails = std::vector<std::pair<std::string, std::string>>;

// "QUOTA_EXCEEDED"; "" for kNone.
std::string_view ReasonName(Reason reason);
// The inverse; kNone for a name this build does not know.
Reason ReasonFromName(std::string_view name);

// A status with reason and details attached. `message` names cause and cure.
absl::Status MakeError(absl::StatusCode code, Reason reason, std::string_view message,
                       const ErrorDetails& details = {});

// A failed system call: picks the code from `error_number`, and says `what` (a phrase such as "memfd_create for pool
// p") and strerror.
absl::Status ErrnoError(int error_number, std::string_view what);

// Reason and details of a status made by MakeError; kNone and {} for any other.
Reason ReasonOf(const absl::Status& status);
ErrorDetails DetailsOf(const absl::Status& status);
// One detail by name.
std::optional<std::string> DetailOf(const absl::Status& status, std::string_view name);

}  // namespace ub

#endif  // UB_WIRE_ERROR_H_
