#include "proto/wire/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ub {
namespace {

// The payload is reason, then name and value in turn, each ended by a NUL. A NUL within one of them (values come from
// outside) becomes a '?', or it could forge another detail.
constexpr char kPayloadUrl[] = "ub/error";

struct Named {
  Reason reason;
  std::string_view name;
};

constexpr auto kNames = std::to_array<Named>({
    {Reason::kPoolEmpty, "POOL_EMPTY"},
    {Reason::kQuotaExceeded, "QUOTA_EXCEEDED"},
    {Reason::kTooManySessions, "TOO_MANY_SESSIONS"},
    {Reason::kTooManyWaiters, "TOO_MANY_WAITERS"},
    {Reason::kTooManyLeases, "TOO_MANY_LEASES"},
    {Reason::kDaemonFdLimit, "DAEMON_FD_LIMIT"},
    {Reason::kClientFdLimit, "CLIENT_FD_LIMIT"},
    {Reason::kTooManyQueues, "TOO_MANY_QUEUES"},
    {Reason::kTooManyFiles, "TOO_MANY_FILES"},
    {Reason::kQueueFull, "QUEUE_FULL"},
    {Reason::kNoSpace, "NO_SPACE"},
    {Reason::kPoolDoesNotFit, "POOL_DOES_NOT_FIT"},
    {Reason::kMissingField, "MISSING_FIELD"},
    {Reason::kBadField, "BAD_FIELD"},
    {Reason::kNeverSatisfiable, "NEVER_SATISFIABLE"},
    {Reason::kBadConfig, "BAD_CONFIG"},
    {Reason::kBadEntry, "BAD_ENTRY"},
    {Reason::kBadMemory, "BAD_MEMORY"},
    {Reason::kBadFile, "BAD_FILE"},
    {Reason::kOverlap, "OVERLAP"},
    {Reason::kOutOfRange, "OUT_OF_RANGE"},
    {Reason::kNoSuchLease, "NO_SUCH_LEASE"},
    {Reason::kNoSuchPool, "NO_SUCH_POOL"},
    {Reason::kNoSuchTicket, "NO_SUCH_TICKET"},
    {Reason::kNoSuchQueue, "NO_SUCH_QUEUE"},
    {Reason::kNoSuchFile, "NO_SUCH_FILE"},
    {Reason::kNoSuchOffer, "NO_SUCH_OFFER"},
    {Reason::kNoSuchTransfer, "NO_SUCH_TRANSFER"},
    {Reason::kVersionMismatch, "VERSION_MISMATCH"},
    {Reason::kStaleGeneration, "STALE_GENERATION"},
    {Reason::kForked, "FORKED"},
    {Reason::kReadOnly, "READ_ONLY"},
    {Reason::kAlreadyRunning, "ALREADY_RUNNING"},
    {Reason::kForeignFile, "FOREIGN_FILE"},
    {Reason::kNotCacheable, "NOT_CACHEABLE"},
    {Reason::kNotShareable, "NOT_SHAREABLE"},
    {Reason::kInUse, "IN_USE"},
    {Reason::kPathUnavailable, "PATH_UNAVAILABLE"},
    {Reason::kQueueBroken, "QUEUE_BROKEN"},
    {Reason::kNoSession, "NO_SESSION"},
    {Reason::kNotAdmin, "NOT_ADMIN"},
    {Reason::kSocketAccess, "SOCKET_ACCESS"},
    {Reason::kNotRunning, "NOT_RUNNING"},
    {Reason::kNotAnswering, "NOT_ANSWERING"},
    {Reason::kDraining, "DRAINING"},
    {Reason::kStopping, "STOPPING"},
    {Reason::kSessionEnded, "SESSION_ENDED"},
    {Reason::kSuperseded, "SUPERSEDED"},
    {Reason::kRevoked, "REVOKED"},
    {Reason::kExpired, "EXPIRED"},
    {Reason::kWaitTimeout, "WAIT_TIMEOUT"},
    {Reason::kTransferDeadline, "TRANSFER_DEADLINE"},
    {Reason::kCancelled, "CANCELLED"},
    {Reason::kInDoubt, "IN_DOUBT"},
    {Reason::kDeviceError, "DEVICE_ERROR"},
    {Reason::kMemoryTampered, "MEMORY_TAMPERED"},
    {Reason::kKernelRefused, "KERNEL_REFUSED"},
    {Reason::kMalformedFrame, "MALFORMED_FRAME"},
});

void Append(std::string& payload, std::string_view part) {
  size_t start = payload.size();
  payload.append(part);
  std::replace(payload.begin() + static_cast<std::ptrdiff_t>(start), payload.end(), '\0', '?');
  payload.push_back('\0');
}

std::string Flat(const absl::Status& status) {
  auto payload = status.GetPayload(kPayloadUrl);
  return payload ? std::string(*payload) : std::string();
}

absl::StatusCode CodeForErrno(int error_number) {
  switch (error_number) {
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ETOOMANYREFS:
      return absl::StatusCode::kResourceExhausted;
    case EINVAL:
      return absl::StatusCode::kInvalidArgument;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

std::string_view ReasonName(Reason reason) {
  for (const auto& named : kNames) {
    if (named.reason == reason) return named.name;
  }
  return "";
}

Reason ReasonFromName(std::string_view name) {
  for (const auto& named : kNames) {
    if (named.name == name) return named.reason;
  }
  return Reason::kNone;
}

absl::Status MakeError(absl::StatusCode code, Reason reason, std::string_view message, const ErrorDetails& details) {
  absl::Status status(code, absl::string_view(message.data(), message.size()));
  std::string payload;
  Append(payload, ReasonName(reason));
  for (const auto& [name, value] : details) {
    Append(payload, name);
    Append(payload, value);
  }
  status.SetPayload(kPayloadUrl, absl::Cord(std::move(payload)));
  return status;
}

absl::Status ErrnoError(int error_number, std::string_view what) {
  // strerror is not thread-safe; the category's message is.
  std::string why = std::generic_category().message(error_number);
  return MakeError(CodeForErrno(error_number), Reason::kKernelRefused, absl::StrCat(std::string(what), ": ", why),
                   {{"call", std::string(what)}, {"errno", absl::StrCat(error_number)}});
}

Reason ReasonOf(const absl::Status& status) {
  std::string payload = Flat(status);
  return ReasonFromName(std::string_view(payload).substr(0, payload.find('\0')));
}

ErrorDetails DetailsOf(const absl::Status& status) {
  std::vector<std::string> parts = absl::StrSplit(Flat(status), '\0');
  ErrorDetails details;
  for (size_t i = 1; i + 1 < parts.size(); i += 2) details.emplace_back(parts[i], parts[i + 1]);
  return details;
}

std::optional<std::string> DetailOf(const absl::Status& status, std::string_view name) {
  for (auto& [key, value] : DetailsOf(status)) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace ub
