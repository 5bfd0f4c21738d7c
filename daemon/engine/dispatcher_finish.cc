// The dispatcher's third part: what the results mean, and the completions.
#include <array>
#include <cerrno>

#include "daemon/engine/dispatcher.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::MemoryKind;
using ub::wire::Op;
using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::PathReason;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

// A device that says "again" so often says no.
constexpr uint16_t kMostTries = 1000;

TransferError ErrorFor(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return TransferError::kNoSpace;
    case EFAULT:
      return TransferError::kMemoryTampered;
    case ECANCELED:
      return TransferError::kCancelled;
    default:
      return TransferError::kDeviceError;
  }
}

bool IsOp(const Transfer& transfer, Op op) { return static_cast<Op>(transfer.entry.op) == op; }

void SayKinds(Op op, CompletionEntry& completion) {
  if (op == Op::kRead || op == Op::kCopy || op == Op::kWrite) {
    completion.from = static_cast<uint8_t>(op == Op::kRead ? MemoryKind::kFile : MemoryKind::kHost);
    completion.to = static_cast<uint8_t>(op == Op::kWrite ? MemoryKind::kFile : MemoryKind::kHost);
  }
}

}  // namespace

bool Dispatcher::Reap() {
  std::array<FileResult, 64> results;
  bool any = false;
  size_t count = 0;
  do {
    count = workers_.ring->Reap(absl::MakeSpan(results));
    if (count == 0) break;
    any = true;
    now_ns_ = MonoNs();
    for (size_t i = 0; i < count; ++i) Landed({results[i].tag, results[i].result, true});
  } while (count == results.size());
  return any;
}

void Dispatcher::TakeResults(absl::Span<const PieceResult> results, uint64_t now_ns) {
  now_ns_ = now_ns;
  for (const PieceResult& result : results) Landed(result);
}

void Dispatcher::Landed(const PieceResult& result) {
  Flight* flight = flights_.Find(result.tag);
  if (flight == nullptr) return;
  Transfer& transfer = *flight->transfer;
  PortState& state = ports_[static_cast<size_t>(transfer.port)];
  --state.pieces;
  state.bytes -= flight->length - flight->got;
  transfer.registered &= result.registered;
  transfer.last_done_ns = now_ns_;
  Judge(*flight, result.result);
}

void Dispatcher::Judge(Flight& flight, int32_t result) {
  Transfer& transfer = *flight.transfer;
  if (result >= 0) {
    JudgeBytes(flight, static_cast<uint32_t>(result));
    return;
  }
  const int error_number = -result;
  const bool again = error_number == EAGAIN || error_number == EINTR;
  if (again && ++flight.tries < kMostTries) {
    Again(flight);
    return;
  }
  if (error_number == EINVAL && flight.direct && FallBack(flight)) return;
  const bool refused = error_number == EINVAL && flight.direct;
  if (refused) transfer.path_reason = PathReason::kDirectRefused;
  transfer.StopAt(flight.at + flight.got, refused ? TransferError::kPathUnavailable : ErrorFor(error_number),
                  static_cast<uint16_t>(error_number));
  EndFlight(flight);
}

// The file system says yes to O_DIRECT when a file is opened and no when it is used.
bool Dispatcher::FallBack(Flight& flight) {
  Transfer& transfer = *flight.transfer;
  if (transfer.policy == PathPolicy::kDirectOnly || transfer.file->staged_fd() < 0) return false;
  transfer.path = Path::kStaged;
  transfer.path_reason = PathReason::kDirectRefused;
  flight.direct = false;
  Again(flight);
  return true;
}

void Dispatcher::JudgeBytes(Flight& flight, uint32_t bytes) {
  Transfer& transfer = *flight.transfer;
  if (IsOp(transfer, Op::kFsync)) {
    EndFlight(flight);
    return;
  }
  const uint32_t wanted = flight.length - flight.got;
  flight.got += bytes < wanted ? bytes : wanted;
  if (flight.got == flight.length) {
    EndFlight(flight);
    return;
  }
  const uint64_t here = flight.at + flight.got;
  if (!IsOp(transfer, Op::kRead)) {
    if (bytes != 0) {
      Again(flight);
      return;
    }
    transfer.StopAt(here, TransferError::kDeviceError, EIO);
    EndFlight(flight);
    return;
  }
  // Short: the end of the file, most likely. Nothing at all says so for sure; so does a direct read that ends where no
  // direct read can go on.
  const bool at_end = bytes == 0 || (flight.direct && here % transfer.file->facts().offset_align != 0);
  if (!at_end) {
    Again(flight);
    return;
  }
  transfer.StopAt(here, TransferError::kOk, 0);
  Unqueue(transfer);
  EndFlight(flight);
}

void Dispatcher::Again(Flight& flight) { ports_[static_cast<size_t>(flight.transfer->port)].again.push_back(&flight); }

void Dispatcher::EndFlight(Flight& flight) {
  Transfer& transfer = *flight.transfer;
  flights_.Free(flight);
  --transfer.in_flight;
  if (transfer.ended) Unqueue(transfer);
  if (transfer.finished()) Finish(transfer);
}

void Dispatcher::StopAndMaybeFinish(Transfer& transfer, TransferError why) {
  // What was posted in full ends as the device says.
  if (transfer.posted != transfer.length) transfer.StopAt(transfer.posted, why, 0);
  Unqueue(transfer);
  if (transfer.finished()) Finish(transfer);
}

CompletionEntry Dispatcher::Describe(const Transfer& transfer) const {
  CompletionEntry completion = {};
  completion.bytes = transfer.moved();
  completion.error = static_cast<uint8_t>(transfer.error);
  completion.detail = transfer.detail;
  const bool refused = transfer.error == TransferError::kPathUnavailable;
  if (transfer.posted != 0 || refused) {
    completion.path = static_cast<uint8_t>(refused ? Path::kNone : transfer.path);
    completion.path_reason = static_cast<uint8_t>(transfer.path_reason);
  }
  SayKinds(static_cast<Op>(transfer.entry.op), completion);
  if (transfer.posted != 0) completion.device_ns = transfer.last_done_ns - transfer.first_post_ns;
  if (completion.bytes != 0 && transfer.registered) completion.flags |= ub::wire::kCompletionRegistered;
  return completion;
}

void Dispatcher::AnswerDeadline(Transfer& transfer) {
  CompletionEntry completion = {};
  completion.user_data = transfer.entry.user_data;
  completion.error = static_cast<uint8_t>(TransferError::kDeadline);
  completion.flags = ub::wire::kCompletionMore;
  SayKinds(static_cast<Op>(transfer.entry.op), completion);
  transfer.answered = true;
  transfer.queue->ring.Complete(completion);
  Touch(*transfer.queue);
}

void Dispatcher::Finish(Transfer& transfer) {
  // Whose descriptor it is may have taken O_DIRECT off it meanwhile: then nobody knows which way the bytes went.
  if (transfer.path == Path::kDirect && transfer.file != nullptr && transfer.file->FlagsChanged()) {
    transfer.path = Path::kStaged;
    transfer.path_reason = PathReason::kFlagsChanged;
    if (transfer.policy == PathPolicy::kDirectOnly && transfer.error == TransferError::kOk) {
      transfer.error = TransferError::kPathUnavailable;
    }
  }
  if (transfer.cancelled && transfer.error == TransferError::kOk) transfer.error = TransferError::kCancelled;
  ServedQueue& queue = *transfer.queue;
  const CompletionEntry completion = Describe(transfer);
  const SubmitEntry entry = transfer.entry;
  const bool answered = transfer.answered;
  if (transfer.deadline_ns != kNeverNs) deadlines_.erase({transfer.deadline_ns, &transfer});
  queue.flying.Remove(&transfer);
  queue.in_flight.Set(queue.in_flight.read() - 1);
  queue.oldest_ns.Set(queue.flying.empty() ? 0 : queue.flying.first()->taken_ns);
  --in_flight_;
  transfer.Recycle();  // unpins before the client can know
  spare_.emplace_back(&transfer);
  Answer(queue, entry, completion, answered);
}

void Dispatcher::Answer(ServedQueue& queue, const SubmitEntry& entry, const CompletionEntry& completion,
                        bool answered_before) {
  CompletionEntry last = completion;
  last.user_data = entry.user_data;
  queue.ring.Complete(last);
  if (entry.deadline_ms != 0 && !answered_before) queue.ring.GiveBackRoom(1);
  shared_.counts.Count(last);
  queue.completed.Add();
  queue.bytes.Add(last.bytes);
  if (last.error != 0) queue.failed.Add();
  Touch(queue);
  if (queue.session->Leave()) shared_.session_has_room();
}

}  // namespace ubd
