#include "daemon/engine/intake.h"

#include <cerrno>
#include <utility>

#include "daemon/engine/path_choice.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

using ub::wire::Op;
using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::PathReason;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

TransferError ErrorOf(const absl::Status& status) {
  switch (ub::ReasonOf(status)) {
    case ub::Reason::kStaleGeneration:
      return TransferError::kStaleGeneration;
    case ub::Reason::kReadOnly:
      return TransferError::kReadOnly;
    case ub::Reason::kOutOfRange:
      return TransferError::kOutOfRange;
    case ub::Reason::kStopping:
      return TransferError::kStopping;
    default:
      return TransferError::kNoSuchLease;
  }
}

RangeRequest FirstRange(const Transfer& transfer, Access needed) {
  const SubmitEntry& entry = transfer.entry;
  return {.session = transfer.queue->session->id,
          .lease = LeaseId(entry.lease),
          .generation = entry.generation,
          .offset = Bytes(entry.offset),
          .length = Bytes(entry.length),
          .needed = needed};
}

// Both ranges are within their leases: no sum here can overflow.
bool Overlap(const SubmitEntry& entry) {
  return entry.lease == entry.target_lease && entry.length != 0 && entry.offset < entry.target_offset + entry.length &&
         entry.target_offset < entry.offset + entry.length;
}

// Whether the bytes' places suit the device, whatever the policy says.
bool DirectWouldDo(PathQuestion question, const FileTarget& file) {
  question.policy = PathPolicy::kDirectOnly;
  return file.direct_fd() >= 0 && ChoosePath(question, file.facts()).path == Path::kDirect;
}

}  // namespace

bool Intake::WellFormed(const SubmitEntry& entry) {
  return entry.op <= static_cast<uint8_t>(Op::kCancel) &&
         entry.policy <= static_cast<uint8_t>(PathPolicy::kStagedOnly) && entry.reserved == 0;
}

TransferError Intake::Check(Transfer& transfer) {
  const auto op = static_cast<Op>(transfer.entry.op);
  return op == Op::kCopy ? CheckCopy(transfer) : CheckFile(transfer);
}

TransferError Intake::CheckFile(Transfer& transfer) {
  const SubmitEntry& entry = transfer.entry;
  const auto op = static_cast<Op>(entry.op);
  transfer.file = transfer.queue->session->FindFile(entry.target);
  if (transfer.file == nullptr) return TransferError::kNoSuchFile;
  const FileFacts& facts = transfer.file->facts();
  transfer.port = facts.slow ? Port::kSlow : Port::kRing;
  if (op == Op::kFsync) {
    transfer.length = 1;
    return TransferError::kOk;
  }
  if (op == Op::kRead ? !facts.readable : !facts.writable) return TransferError::kReadOnly;
  constexpr uint64_t kMostOffset = INT64_MAX;
  if (entry.target_offset > kMostOffset || entry.length > kMostOffset - entry.target_offset) {
    return TransferError::kOutOfRange;
  }
  const Access needed = op == Op::kRead ? Access::kReadWrite : Access::kReadOnly;
  TransferError error = Pin(FirstRange(transfer, needed), transfer.memory, transfer.from);
  if (error != TransferError::kOk) return error;
  transfer.length = entry.length;
  return ChooseWay(transfer);
}

TransferError Intake::ChooseWay(Transfer& transfer) {
  const FileTarget& file = *transfer.file;
  transfer.policy = EffectivePolicy(static_cast<PathPolicy>(transfer.entry.policy), transfer.queue->policy,
                                    shared_.policy.load(std::memory_order_relaxed));
  const std::vector<Piece>& pieces = transfer.memory.pieces();
  const PathQuestion question = {.policy = transfer.policy,
                                 .file_offset = transfer.entry.target_offset,
                                 .memory_offset = pieces.empty() ? 0 : pieces.front().offset.count(),
                                 .length = transfer.length,
                                 .min_direct_bytes = shared_.min_direct_storage.load(std::memory_order_relaxed),
                                 .flags_changed = file.FlagsChanged()};
  const PathChoice choice = ChoosePath(question, file.facts());
  transfer.path = choice.path;
  transfer.path_reason = choice.reason;
  if (choice.path == Path::kStaged && file.staged_fd() < 0) {
    // The client's only description has O_DIRECT and cannot be reopened.
    const bool direct = transfer.policy != PathPolicy::kStagedOnly && DirectWouldDo(question, file);
    transfer.path = direct ? Path::kDirect : Path::kNone;
    if (direct) transfer.path_reason = PathReason::kNone;
  }
  if (transfer.path == Path::kDirect && file.direct_fd() < 0) {
    const bool staged = transfer.policy != PathPolicy::kDirectOnly && file.staged_fd() >= 0;
    transfer.path = staged ? Path::kStaged : Path::kNone;
    transfer.path_reason = PathReason::kDirectRefused;
  }
  return transfer.path == Path::kNone ? TransferError::kPathUnavailable : TransferError::kOk;
}

TransferError Intake::CheckCopy(Transfer& transfer) {
  const SubmitEntry& entry = transfer.entry;
  transfer.port = Port::kCopy;
  TransferError error = Pin(FirstRange(transfer, Access::kReadOnly), transfer.memory, transfer.from);
  if (error != TransferError::kOk) return error;
  const RangeRequest target = {.session = transfer.queue->session->id,
                               .lease = LeaseId(entry.target_lease),
                               .generation = entry.target,
                               .offset = Bytes(entry.target_offset),
                               .length = Bytes(entry.length),
                               .needed = Access::kReadWrite};
  error = Pin(target, transfer.second, transfer.to);
  if (error != TransferError::kOk) return error;
  if (Overlap(entry)) return TransferError::kOverlap;
  transfer.length = entry.length;
  transfer.path = Path::kDirect;
  return TransferError::kOk;
}

TransferError Intake::Pin(const RangeRequest& request, RangePin& pin, Cursor& cursor) {
  absl::StatusOr<RangePin> pinned = shared_.broker->PinRange(request);
  if (!pinned.ok()) return ErrorOf(pinned.status());
  pin = *std::move(pinned);
  for (const Piece& piece : pin.pieces()) {
    const MappedBlock block = shared_.memory.Locate(piece.block);
    if (block.address == nullptr) return TransferError::kMemoryTampered;
    cursor.stretches.push_back(
        {static_cast<char*>(block.address) + piece.offset.count(), piece.length.count(), block.slot, piece.block});
  }
  return TransferError::kOk;
}

}  // namespace ubd
