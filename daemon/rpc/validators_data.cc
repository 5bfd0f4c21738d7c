#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/field_faults.h"
#include "daemon/rpc/validators.h"
#include "proto/wire/queue_names.h"

namespace ubd {
namespace {

using ub::wire::PathPolicy;

static_assert(static_cast<int>(PathPolicy::kDirectOnly) == ub::v1::DIRECT_ONLY);
static_assert(static_cast<int>(PathPolicy::kPreferDirect) == ub::v1::PREFER_DIRECT);
static_assert(static_cast<int>(PathPolicy::kStagedOnly) == ub::v1::STAGED_ONLY);

// Every page size is a multiple of this.
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostOwnBytes = uint64_t{1} << 30;

absl::Status CheckEntries(const char* field, uint32_t entries) {
  if (entries >= ub::wire::kMinQueueEntries && entries <= ub::wire::kMaxQueueEntries && std::has_single_bit(entries))
    return absl::OkStatus();
  return BadField(field, absl::StrCat("must be a power of two from ", ub::wire::kMinQueueEntries, " to ",
                                      ub::wire::kMaxQueueEntries, ", not ", entries));
}

template <class Number>
absl::StatusOr<Number> CheckId(const char* field, bool present, Number id, const char* zero) {
  if (!present) return MissingField(field);
  if (id == 0) return BadField(field, zero);
  return id;
}

absl::Status CheckRange(const ub::v1::RegisterMemoryRequest& request) {
  if (!request.has_offset()) return MissingField("offset");
  if (!request.has_bytes()) return MissingField("bytes");
  if (request.offset() % kPage != 0) return BadField("offset", "must be a multiple of the memfd's page size");
  if (request.bytes() == 0) return BadField("bytes", "must be at least one page");
  if (request.bytes() % kPage != 0) return BadField("bytes", "must be a multiple of the memfd's page size");
  if (request.bytes() > kMostOwnBytes) return BadField("bytes", "must be at most 1 GiB; register more ranges");
  // As the kernel counts file offsets.
  if (request.offset() > (uint64_t{1} << 62)) return BadField("offset", "is beyond the end of any file");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<QueueRequest> CheckOpenQueue(const ub::v1::OpenQueueRequest& request, SessionId session) {
  if (!request.has_sq_entries()) return MissingField("sq_entries");
  if (absl::Status sq = CheckEntries("sq_entries", request.sq_entries()); !sq.ok()) return sq;
  QueueRequest checked;
  checked.session = session;
  checked.sq_entries = request.sq_entries();
  checked.cq_entries = std::min(2 * checked.sq_entries, ub::wire::kMaxQueueEntries);
  if (request.has_cq_entries()) {
    if (absl::Status cq = CheckEntries("cq_entries", request.cq_entries()); !cq.ok()) return cq;
    if (request.cq_entries() < request.sq_entries()) return BadField("cq_entries", "must be at least sq_entries");
    checked.cq_entries = request.cq_entries();
  }
  if (!ub::v1::PathPolicy_IsValid(request.policy()))
    return BadField("policy", absl::StrCat("must be one of PathPolicy's values, not ", request.policy()));
  checked.policy = static_cast<PathPolicy>(request.policy());
  return checked;
}

absl::StatusOr<uint32_t> CheckCloseQueue(const ub::v1::CloseQueueRequest& request) {
  return CheckId("queue", request.has_queue(), request.queue(), "0 is no queue");
}

absl::StatusOr<uint64_t> CheckOpenFile(const ub::v1::OpenFileRequest& request) {
  return CheckId("offer", request.has_offer(), request.offer(), "0 is no offer");
}

absl::StatusOr<uint32_t> CheckCloseFile(const ub::v1::CloseFileRequest& request) {
  return CheckId("file", request.has_file(), request.file(), "0 is no file");
}

absl::StatusOr<OwnMemory> CheckRegisterMemory(const ub::v1::RegisterMemoryRequest& request) {
  absl::StatusOr<uint64_t> offer = CheckId("offer", request.has_offer(), request.offer(), "0 is no offer");
  if (!offer.ok()) return offer.status();
  if (absl::Status range = CheckRange(request); !range.ok()) return range;
  if (!request.has_access()) return MissingField("access");
  OwnMemory own{*offer, Bytes(request.offset()), Bytes(request.bytes()), Access::kReadOnly};
  if (request.access() == ub::v1::READ_WRITE) {
    own.access = Access::kReadWrite;
  } else if (request.access() != ub::v1::READ_ONLY) {
    return BadField("access", absl::StrCat("must be READ_WRITE (1) or READ_ONLY (2), not ", request.access()));
  }
  return own;
}

absl::StatusOr<PathPolicy> CheckSetPath(const ub::v1::SetPathRequest& request) {
  if (!request.has_policy()) return MissingField("policy");
  std::optional<PathPolicy> policy = ub::wire::PathPolicyFromName(request.policy());
  if (policy && *policy != PathPolicy::kDefault) return *policy;
  return BadField("policy", "must be \"direct-only\", \"prefer-direct\" or \"staged-only\"");
}

}  // namespace ubd
