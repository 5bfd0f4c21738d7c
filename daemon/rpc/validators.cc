#include "daemon/rpc/validators.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/field_faults.h"

namespace ubd {
namespace {

constexpr size_t kMaxPoolName = 64;
constexpr size_t kMaxWhy = 200;
// Longer than any machine runs, and far from what a duration or a sum with the clock could not hold.
constexpr uint64_t kMaxMilliseconds = uint64_t{1000} * 3600 * 24 * 366 * 100;

absl::StatusOr<absl::Duration> CheckMilliseconds(std::string_view field, uint64_t value, uint64_t least) {
  if (value < least) return BadField(field, "must be at least 1 ms; leave it out for no limit of your own");
  if (value > kMaxMilliseconds)
    return BadField(field, absl::StrCat("must be at most ", kMaxMilliseconds, " ms (100 years)"));
  return absl::Milliseconds(static_cast<int64_t>(value));
}

absl::Status CheckPoolName(std::string_view field, std::string_view name) {
  if (name.size() > kMaxPoolName)
    return BadField(field, absl::StrCat("a pool name has at most ", kMaxPoolName, " bytes"));
  bool fine = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
  if (!fine) return BadField(field, "a pool name has letters, digits, '-', '_' and '.' only");
  return absl::OkStatus();
}

absl::StatusOr<LeaseId> CheckLease(bool present, uint64_t lease) {
  if (!present) return MissingField("lease");
  if (lease == 0) return BadField("lease", "0 is no lease");
  return LeaseId(lease);
}

}  // namespace

absl::StatusOr<AcquireRequest> CheckAcquire(const ub::v1::AcquireRequest& request, SessionId session) {
  if (!request.has_bytes()) return MissingField("bytes");
  if (request.bytes() == 0) return BadField("bytes", "must be at least 1");
  if (!request.has_request_id()) return MissingField("request_id");
  if (absl::Status name = CheckPoolName("pool", request.pool()); !name.ok()) return name;
  AcquireRequest checked;
  checked.session = session;
  checked.pool = request.pool();
  checked.bytes = Bytes(request.bytes());
  checked.request = RequestId(request.request_id());
  checked.cacheable = request.cacheable();
  if (request.has_wait_ms()) {
    absl::StatusOr<absl::Duration> wait = CheckMilliseconds("wait_ms", request.wait_ms(), 0);
    if (!wait.ok()) return wait.status();
    checked.wait = *wait;
  }
  if (request.has_ttl_ms()) {
    absl::StatusOr<absl::Duration> ttl = CheckMilliseconds("ttl_ms", request.ttl_ms(), 1);
    if (!ttl.ok()) return ttl.status();
    checked.ttl = *ttl;
  }
  return checked;
}

absl::StatusOr<ReleaseTarget> CheckRelease(const ub::v1::ReleaseRequest& request) {
  if (request.has_lease() && request.has_request_id())
    return BadField("request_id", "give lease or request_id, not both");
  if (request.has_request_id()) return ReleaseTarget(RequestId(request.request_id()));
  absl::StatusOr<LeaseId> lease = CheckLease(request.has_lease(), request.lease());
  if (!lease.ok()) return lease.status();
  return ReleaseTarget(*lease);
}

absl::StatusOr<ShareRequest> CheckShare(const ub::v1::ShareRequest& request, SessionId session) {
  absl::StatusOr<LeaseId> lease = CheckLease(request.has_lease(), request.lease());
  if (!lease.ok()) return lease.status();
  if (!request.has_access()) return MissingField("access");
  if (!request.has_uid()) return MissingField("uid");
  ShareRequest checked;
  checked.session = session;
  checked.lease = *lease;
  if (request.access() == ub::v1::READ_WRITE) {
    checked.access = Access::kReadWrite;
  } else if (request.access() == ub::v1::READ_ONLY) {
    checked.access = Access::kReadOnly;
  } else {
    return BadField("access", absl::StrCat("must be READ_WRITE (1) or READ_ONLY (2), not ", request.access()));
  }
  // (uid_t)-1 means "nobody in particular" to the kernel; no process has it.
  if (request.uid() == std::numeric_limits<uint32_t>::max()) return BadField("uid", "4294967295 is no user");
  checked.uid = Uid(request.uid());
  if (request.has_ticket_ttl_ms()) {
    absl::StatusOr<absl::Duration> ttl = CheckMilliseconds("ticket_ttl_ms", request.ticket_ttl_ms(), 1);
    if (!ttl.ok()) return ttl.status();
    checked.ticket_ttl = *ttl;
  }
  return checked;
}

absl::StatusOr<TicketId> CheckAttach(const ub::v1::AttachRequest& request) {
  if (!request.has_ticket()) return MissingField("ticket");
  TicketId ticket;
  if (request.ticket().size() != ticket.size()) {
    return BadField("ticket", absl::StrCat("must have exactly ", ticket.size(), " bytes, as Share returned it"));
  }
  std::copy(request.ticket().begin(), request.ticket().end(), ticket.begin());
  return ticket;
}

absl::StatusOr<std::optional<std::string>> CheckListBlocks(const ub::v1::ListBlocksRequest& request) {
  if (!request.has_pool()) return std::optional<std::string>();
  if (request.pool().empty()) return BadField("pool", "is empty; leave it out for all pools");
  if (absl::Status name = CheckPoolName("pool", request.pool()); !name.ok()) return name;
  return std::optional<std::string>(request.pool());
}

absl::StatusOr<RevokeOrder> CheckRevoke(const ub::v1::RevokeLeaseRequest& request) {
  absl::StatusOr<LeaseId> lease = CheckLease(request.has_lease(), request.lease());
  if (!lease.ok()) return lease.status();
  if (request.reason().size() > kMaxWhy) return BadField("reason", absl::StrCat("has at most ", kMaxWhy, " bytes"));
  RevokeOrder order{*lease, request.reason()};
  for (char& c : order.why) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (order.why.empty()) order.why = "revoked by an operator";
  return order;
}

absl::StatusOr<bool> CheckSetDrain(const ub::v1::SetDrainRequest& request) {
  if (!request.has_drain()) return MissingField("drain");
  return request.drain();
}

}  // namespace ubd
