#include "proto/wire/queue_names.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ub::wire {
namespace {

template <size_t N, class E>
const char* NameIn(const std::array<const char*, N>& names, E value) {
  auto index = static_cast<size_t>(value);
  return index < N ? names[index] : "?";
}

constexpr std::array<const char*, 4> kPolicies = {"default", "direct-only", "prefer-direct", "staged-only"};

struct Meaning {
  absl::StatusCode code;
  Reason reason;
  const char* text;
};

// In the order of TransferError.
constexpr std::array<Meaning, 16> kMeanings = {{
    {absl::StatusCode::kOk, Reason::kNone, ""},
    {absl::StatusCode::kInvalidArgument, Reason::kBadEntry,
     "the daemon does not understand this entry: unknown operation, policy or reserved bits"},
    {absl::StatusCode::kNotFound, Reason::kNoSuchLease, "this session holds no such lease (any more)"},
    {absl::StatusCode::kFailedPrecondition, Reason::kStaleGeneration, "the lease was granted anew since"},
    {absl::StatusCode::kOutOfRange, Reason::kOutOfRange, "the range goes beyond the end of the lease"},
    {absl::StatusCode::kFailedPrecondition, Reason::kReadOnly,
     "lease or file may not be used this way: it was not opened for it"},
    {absl::StatusCode::kNotFound, Reason::kNoSuchFile, "this session has no such file open (any more)"},
    {absl::StatusCode::kFailedPrecondition, Reason::kPathUnavailable,
     "direct-only was asked for, and a direct transfer is not possible"},
    {absl::StatusCode::kDeadlineExceeded, Reason::kTransferDeadline,
     "the transfer did not end by its deadline; it goes on, and its memory is in use until it ends"},
    {absl::StatusCode::kCancelled, Reason::kCancelled, "cancelled"},
    {absl::StatusCode::kResourceExhausted, Reason::kNoSpace, "the file system has no room for it"},
    {absl::StatusCode::kInternal, Reason::kDeviceError, "the device failed"},
    {absl::StatusCode::kDataLoss, Reason::kMemoryTampered, "pages of the lease were taken away by one of its holders"},
    {absl::StatusCode::kNotFound, Reason::kNoSuchTransfer, "no transfer with this tag is in flight"},
    {absl::StatusCode::kUnavailable, Reason::kStopping, "ubd is stopping"},
    {absl::StatusCode::kInvalidArgument, Reason::kOverlap, "source and target of a COPY share bytes"},
}};

}  // namespace

const char* PathName(Path path) {
  static constexpr std::array<const char*, 3> kNames = {"none", "direct", "staged"};
  return NameIn(kNames, path);
}

const char* PathReasonName(PathReason reason) {
  static constexpr std::array<const char*, 9> kNames = {"",
                                                        "forced",
                                                        "below-min-direct",
                                                        "unaligned",
                                                        "fs-not-trusted",
                                                        "fs-not-provable",
                                                        "flags-changed",
                                                        "direct-refused",
                                                        "no-engine"};
  return NameIn(kNames, reason);
}

const char* PathPolicyName(PathPolicy policy) { return NameIn(kPolicies, policy); }

std::optional<PathPolicy> PathPolicyFromName(std::string_view name) {
  for (size_t i = 0; i < kPolicies.size(); ++i) {
    if (name == kPolicies[i]) return static_cast<PathPolicy>(i);
  }
  return std::nullopt;
}

const char* MemoryKindName(MemoryKind kind) {
  static constexpr std::array<const char*, 4> kNames = {"none", "host", "cuda", "file"};
  return NameIn(kNames, kind);
}

absl::Status TransferStatus(const CompletionEntry& completion) {
  if (completion.error == 0) return absl::OkStatus();
  if (completion.error >= kMeanings.size())
    return absl::InternalError(
        absl::StrCat("the daemon answered with error ", completion.error, ", unknown to this libub"));
  const Meaning& meaning = kMeanings[completion.error];
  std::string text = meaning.text;
  ErrorDetails details;
  if (meaning.reason == Reason::kPathUnavailable) {
    const char* why = PathReasonName(static_cast<PathReason>(completion.path_reason));
    absl::StrAppend(&text, ": ", why);
    details.emplace_back("path_reason", why);
  }
  if (completion.detail != 0) {
    absl::StrAppend(&text, ": ", std::strerror(completion.detail));
    details.emplace_back("errno", absl::StrCat(completion.detail));
  }
  return MakeError(meaning.code, meaning.reason, text, details);
}

}  // namespace ub::wire
