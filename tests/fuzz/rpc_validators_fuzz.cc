// Any request that any program may send: the first byte says which message the rest is. What is taken keeps the
// promises that the rest of the daemon builds on; what is refused names a field and says it is the caller's fault.
#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/rpc/validators.h"
#include "proto/wire/error.h"
#include "tests/fuzz/demand.h"

namespace {

void CheckRefusal(const absl::Status& status) {
  if (status.ok()) return;
  Demand(absl::IsInvalidArgument(status));
  ub::Reason reason = ub::ReasonOf(status);
  Demand(reason == ub::Reason::kMissingField || reason == ub::Reason::kBadField);
  Demand(ub::DetailOf(status, "field").has_value());
}

bool IsName(const std::string& name) {
  for (char c : name) {
    if (c <= ' ' || c == 0x7f || c == '/') return false;
  }
  return name.size() <= 255;
}

bool IsSpan(absl::Duration d, absl::Duration least) { return d >= least && d < absl::InfiniteDuration(); }

void FuzzAcquire(const std::string& body) {
  ub::v1::AcquireRequest request;
  if (!request.ParseFromString(body)) return;
  auto checked = ubd::CheckAcquire(request, ub::SessionId(7));
  CheckRefusal(checked.status());
  if (!checked.ok()) return;
  Demand(checked->session == ub::SessionId(7) && checked->bytes.count() >= 1 && request.has_request_id());
  Demand(IsName(checked->pool) && IsSpan(checked->wait, absl::ZeroDuration()));
  Demand(!checked->ttl || IsSpan(*checked->ttl, absl::Nanoseconds(1)));
}

void FuzzShare(const std::string& body) {
  ub::v1::ShareRequest request;
  if (!request.ParseFromString(body)) return;
  auto checked = ubd::CheckShare(request, ub::SessionId(7));
  CheckRefusal(checked.status());
  if (!checked.ok()) return;
  Demand(checked->lease.value() != 0 && request.has_uid() && request.has_access());
  Demand(checked->access == ub::Access::kReadWrite || checked->access == ub::Access::kReadOnly);
  Demand(!checked->ticket_ttl || IsSpan(*checked->ticket_ttl, absl::Nanoseconds(1)));
}

void FuzzRevoke(const std::string& body) {
  ub::v1::RevokeLeaseRequest request;
  if (!request.ParseFromString(body)) return;
  auto checked = ubd::CheckRevoke(request);
  CheckRefusal(checked.status());
  if (!checked.ok()) return;
  Demand(checked->lease.value() != 0 && !checked->why.empty());
  for (char c : checked->why) Demand(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

void FuzzOpenQueue(const std::string& body) {
  ub::v1::OpenQueueRequest request;
  if (!request.ParseFromString(body)) return;
  auto checked = ubd::CheckOpenQueue(request, ub::SessionId(7));
  CheckRefusal(checked.status());
  if (!checked.ok()) return;
  const uint32_t sq = checked->sq_entries, cq = checked->cq_entries;
  Demand(sq >= ub::wire::kMinQueueEntries && cq >= sq && cq <= ub::wire::kMaxQueueEntries);
  Demand((sq & (sq - 1)) == 0 && (cq & (cq - 1)) == 0);
  Demand(checked->policy <= ub::wire::PathPolicy::kStagedOnly);
}

void FuzzRegisterMemory(const std::string& body) {
  ub::v1::RegisterMemoryRequest request;
  if (!request.ParseFromString(body)) return;
  auto checked = ubd::CheckRegisterMemory(request);
  CheckRefusal(checked.status());
  if (!checked.ok()) return;
  Demand(checked->offer != 0 && checked->bytes.count() >= 4096 && checked->bytes <= ub::GiB(1));
  Demand(checked->bytes.count() % 4096 == 0 && checked->offset.count() % 4096 == 0);
  Demand(checked->offset.count() + checked->bytes.count() > checked->offset.count());
}

void FuzzSetPath(const std::string& body) {
  ub::v1::SetPathRequest request;
  if (!request.ParseFromString(body)) return;
  auto checked = ubd::CheckSetPath(request);
  CheckRefusal(checked.status());
  Demand(!checked.ok() || *checked != ub::wire::PathPolicy::kDefault);
}

template <class Request, class Check>
void FuzzPlain(const std::string& body, Check check) {
  Request request;
  if (request.ParseFromString(body)) CheckRefusal(check(request).status());
}

int FuzzData(int which, const std::string& body) {
  switch (which) {
    case 7:
      FuzzOpenQueue(body);
      break;
    case 8:
      FuzzPlain<ub::v1::CloseQueueRequest>(body, ubd::CheckCloseQueue);
      break;
    case 9:
      FuzzPlain<ub::v1::OpenFileRequest>(body, ubd::CheckOpenFile);
      break;
    case 10:
      FuzzPlain<ub::v1::CloseFileRequest>(body, ubd::CheckCloseFile);
      break;
    case 11:
      FuzzRegisterMemory(body);
      break;
    default:
      FuzzSetPath(body);
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 13 > 6) return FuzzData(data[0] % 13, body);
  switch (data[0] % 13) {
    case 0:
      FuzzAcquire(body);
      break;
    case 1:
      FuzzPlain<ub::v1::ReleaseRequest>(body, ubd::CheckRelease);
      break;
    case 2:
      FuzzShare(body);
      break;
    case 3:
      FuzzPlain<ub::v1::AttachRequest>(body, ubd::CheckAttach);
      break;
    case 4:
      FuzzPlain<ub::v1::ListBlocksRequest>(body, ubd::CheckListBlocks);
      break;
    case 5:
      FuzzRevoke(body);
      break;
    default:
      FuzzPlain<ub::v1::SetDrainRequest>(body, ubd::CheckSetDrain);
  }
  return 0;
}
