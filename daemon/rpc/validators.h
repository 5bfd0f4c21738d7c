// Every request is checked here before the Broker sees it: required fields present, enums known, numbers within what
// the daemon can count, names and tickets well formed. The caller is hostile; nothing of a request that fails is used.
// Pure functions without gRPC: the fuzzer's entry. Errors are INVALID_ARGUMENT with MISSING_FIELD or BAD_FIELD and the
// detail `field`.
#ifndef UBD_RPC_VALIDATORS_H_
#define UBD_RPC_VALIDATORS_H_

#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/requests.h"
#include "daemon/engine/engine.h"
#include "ub/v1/admin.pb.h"
#include "ub/v1/broker.pb.h"

namespace ubd {

absl::StatusOr<AcquireRequest> CheckAcquire(const ub::v1::AcquireRequest& request, SessionId session);

// Exactly one of the two.
using ReleaseTarget = std::variant<LeaseId, RequestId>;
absl::StatusOr<ReleaseTarget> CheckRelease(const ub::v1::ReleaseRequest& request);

absl::StatusOr<ShareRequest> CheckShare(const ub::v1::ShareRequest& request, SessionId session);
absl::StatusOr<TicketId> CheckAttach(const ub::v1::AttachRequest& request);

// The pool to list; none: all.
absl::StatusOr<std::optional<std::string>> CheckListBlocks(const ub::v1::ListBlocksRequest& request);

struct RevokeOrder {
  LeaseId lease;
  std::string why;  // control characters replaced; never empty
};
absl::StatusOr<RevokeOrder> CheckRevoke(const ub::v1::RevokeLeaseRequest& request);
absl::StatusOr<bool> CheckSetDrain(const ub::v1::SetDrainRequest& request);

// --- the data path (validators_data.cc)
absl::StatusOr<QueueRequest> CheckOpenQueue(const ub::v1::OpenQueueRequest& request, SessionId session);
// The id of a queue, a file or an Offer frame; never 0.
absl::StatusOr<uint32_t> CheckCloseQueue(const ub::v1::CloseQueueRequest& request);
absl::StatusOr<uint64_t> CheckOpenFile(const ub::v1::OpenFileRequest& request);
absl::StatusOr<uint32_t> CheckCloseFile(const ub::v1::CloseFileRequest& request);

struct OwnMemory {
  uint64_t offer = 0;
  Bytes offset;
  Bytes bytes;
  Access access = Access::kReadOnly;
};
// Everything but what only the memfd can tell (its page size, its length).
absl::StatusOr<OwnMemory> CheckRegisterMemory(const ub::v1::RegisterMemoryRequest& request);

// Never kDefault.
absl::StatusOr<ub::wire::PathPolicy> CheckSetPath(const ub::v1::SetPathRequest& request);

}  // namespace ubd

#endif  // UBD_RPC_VALIDATORS_H_
