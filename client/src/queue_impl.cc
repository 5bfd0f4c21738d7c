#include "client/src/queue_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/daemon_errors.h"
#include "client/src/local_io.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

using wire::CompletionEntry;
using wire::SubmitEntry;

absl::Status BadEntry(const char* why) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadEntry, absl::StrCat("ub::Op: ", why));
}

absl::Status InDoubt() {
  return MakeError(absl::StatusCode::kAborted, Reason::kInDoubt,
                   "the queue ended while this transfer was in flight: whether it happened is unknown; check, or do it "
                   "again on a new queue");
}

Completion FromEntry(const CompletionEntry& entry, uint64_t tag) {
  Completion done;
  done.tag = tag;
  if (entry.error != 0) done.status = wire::TransferStatus(entry);
  done.bytes = Bytes(entry.bytes);
  done.path = static_cast<Path>(entry.path);
  done.reason = static_cast<PathReason>(entry.path_reason);
  done.from = static_cast<MemoryKind>(entry.from);
  done.to = static_cast<MemoryKind>(entry.to);
  done.registered = (entry.flags & wire::kCompletionRegistered) != 0;
  done.more = (entry.flags & wire::kCompletionMore) != 0;
  done.device_time = absl::Nanoseconds(std::min<uint64_t>(entry.device_ns, INT64_MAX));
  return done;
}

bool IsLocal(const Op& op) { return op.file != nullptr && op.file->local(); }

}  // namespace

QueueImpl::QueueImpl(TransferHost* host, QueueParts parts, wire::PathPolicy policy)
    : host_(host),
      shape_(parts.shape),
      ring_(std::move(parts.ring)),
      batch_bytes_(parts.batch_bytes),
      policy_(policy),
      // What waits in the ring, and what was taken and has a place for its completion.
      pending_(shape_.layout.sq_entries + shape_.layout.cq_entries) {
  host_->AddRing(ring_.get());
}

QueueImpl::~QueueImpl() { host_->RemoveRing(ring_.get()); }

absl::Status QueueImpl::CheckAlive() {
  switch (ring_->life()) {
    case QueueRingClient::Life::kOpen:
      return absl::OkStatus();
    case QueueRingClient::Life::kBroken: {
      const char* why = ring_->broken();
      std::string text = why[0] == '\0' ? "the daemon ended this queue, because what stood in its ring cannot be"
                                        : absl::StrCat("the daemon wrote what cannot be into this queue: ", why);
      return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kQueueBroken,
                       absl::StrCat(text, "; open another one"));
    }
    default:
      return SessionEnded();
  }
}

absl::Status QueueImpl::CheckOp(const Op& op) const {
  auto kind = static_cast<wire::Op>(op.entry.op);
  bool moves = kind == wire::Op::kRead || kind == wire::Op::kWrite;
  bool copies = kind == wire::Op::kCopy;
  if (kind > wire::Op::kFsync) return BadEntry("unknown operation; use the functions of ub/queue.h");
  if ((moves || copies) && op.lease == nullptr) return BadEntry("the Lease or Slot holds nothing");
  if (copies && op.target_lease == nullptr) return BadEntry("the target Lease holds nothing");
  if ((moves || kind == wire::Op::kFsync) && op.file == nullptr) return BadEntry("the File names none");
  for (const LeaseImpl* lease : {op.lease, op.target_lease}) {
    if (lease != nullptr && &lease->host() != host_->lease_host()) return BadEntry("a Lease or Slot of another Client");
  }
  if (op.file != nullptr && op.file->host() != host_) return BadEntry("a File of another Client");
  return absl::OkStatus();
}

absl::Status QueueImpl::CheckAll(absl::Span<const Op> ops, uint32_t& for_ring) {
  if (absl::Status over = CheckAlive(); !over.ok()) return over;
  for (const Op& op : ops) {
    if (absl::Status bad = CheckOp(op); !bad.ok()) return bad;
    for_ring += IsLocal(op) ? 0 : 1;
  }
  if (ops.size() <= Places() && ring_->Room(for_ring) >= for_ring) return absl::OkStatus();
  if (absl::Status over = CheckAlive(); !over.ok()) return over;
  return MakeError(absl::StatusCode::kResourceExhausted, Reason::kQueueFull,
                   absl::StrCat("the queue has no room for ", ops.size(),
                                " more: read completions first (Poll or Wait), or open it deeper"));
}

absl::Status QueueImpl::Submit(absl::Span<const Op> ops, const std::shared_ptr<TransferImpl>& handle) {
  uint32_t for_ring = 0;
  if (absl::Status bad = CheckAll(ops, for_ring); !bad.ok()) return bad;
  uint32_t put = 0;
  for (const Op& op : ops) {
    if (IsLocal(op)) continue;
    Pending& pending = pending_.Add(op, handle);
    SubmitEntry entry = op.entry;
    entry.user_data = pending.id;
    ring_->Put(put++, entry);
    if (handle != nullptr) handle->id = pending.id;
  }
  if (put > 0 && ring_->Publish(put)) ++stats_.doorbells;
  stats_.submitted += ops.size();
  (handle != nullptr ? for_handles_ : for_poll_) += static_cast<uint32_t>(ops.size());
  // The device works meanwhile.
  if (put < ops.size()) {
    for (const Op& op : ops) {
      if (IsLocal(op)) RunLocal(op, handle);
    }
  }
  return absl::OkStatus();
}

void QueueImpl::RunLocal(const Op& op, const std::shared_ptr<TransferImpl>& handle) {
  LocalMemory memory;
  if (op.lease != nullptr) {
    memory = {.data = op.lease->mapping().data(),
              .size = op.lease->mapping().size(),
              .writable = op.lease->info().access == Access::kReadWrite,
              .ended = op.lease->ended() != LeaseEnd::kNot};
  }
  auto policy = static_cast<wire::PathPolicy>(op.entry.policy);
  if (policy == wire::PathPolicy::kDefault) policy = policy_;
  if (policy == wire::PathPolicy::kDefault) policy = op.file->facts().node_policy;
  Completion done = FromEntry(RunLocally(op.entry, *op.file, memory, policy), op.entry.user_data);
  ++stats_.completed;
  if (handle == nullptr) {
    ready_.push_back(std::move(done));
  } else {
    --for_handles_;
    handle->Finish(done);
  }
}

uint32_t QueueImpl::Places() const {
  // Unread completions count too: a caller that never reads must not fill this process's memory.
  return pending_.room() - static_cast<uint32_t>(std::min<size_t>(pending_.room(), ready_.size()));
}

uint32_t QueueImpl::Room() {
  if (ring_->life() != QueueRingClient::Life::kOpen) return 0;
  return std::min(Places(), ring_->Room(shape_.layout.sq_entries));
}

absl::Status QueueImpl::CancelTag(uint64_t tag) {
  Pending* pending = pending_.FindTag(tag);
  return CancelId(pending == nullptr ? 0 : pending->id);
}

absl::Status QueueImpl::CancelId(uint64_t id) {
  if (absl::Status over = CheckAlive(); !over.ok()) return over;
  if (pending_.Find(id) == nullptr) {
    return wire::TransferStatus({.error = static_cast<uint8_t>(wire::TransferError::kNoSuchTransfer)});
  }
  uint32_t ignored = 0;
  Op op = NopOp(0);
  if (absl::Status full = CheckAll({&op, 1}, ignored); !full.ok()) return full;
  op.entry.op = static_cast<uint8_t>(wire::Op::kCancel);
  op.entry.offset = id;
  Pending& pending = pending_.Add(op, nullptr);
  pending.silent = true;
  op.entry.user_data = pending.id;
  ring_->Put(0, op.entry);
  if (ring_->Publish(1)) ++stats_.doorbells;
  return absl::OkStatus();
}

std::optional<Completion> QueueImpl::Match(const CompletionEntry& entry) {
  Pending* pending = pending_.Find(entry.user_data);
  bool more = (entry.flags & wire::kCompletionMore) != 0;
  if (pending == nullptr || entry.bytes > pending->length || (more && pending->answered)) {
    ring_->Break(pending == nullptr ? "a completion of nothing" : "a completion that does not fit its transfer");
    return std::nullopt;
  }
  return Deliver(*pending, FromEntry(entry, pending->tag), true);
}

std::optional<Completion> QueueImpl::Deliver(Pending& pending, Completion done, bool known) {
  std::shared_ptr<TransferImpl> handle = pending.handle;
  bool silent = pending.silent;
  if (done.more) {
    pending.answered = true;
    if (handle == nullptr) return silent ? std::nullopt : std::optional(std::move(done));
    if (!detached_) {
      handle->completion = std::move(done);
      handle->answered = true;
    }
    return std::nullopt;
  }
  if (handle != nullptr) {
    --for_handles_;
    handle->Finish(done);
    // May end the pool that its slot belongs to, so not after `pending` has let go of that.
    handle.reset();
  }
  bool of_handle = pending.handle != nullptr;
  pending_.Remove(pending, known);
  if (!silent) ++stats_.completed;
  return silent || of_handle ? std::nullopt : std::optional(std::move(done));
}

void QueueImpl::EndAll() {
  for (Pending& pending : pending_.entries()) {
    if (!pending.used) continue;
    Completion lost;
    lost.tag = pending.tag;
    lost.status = InDoubt();
    if (std::optional<Completion> done = Deliver(pending, std::move(lost), false)) ready_.push_back(*std::move(done));
  }
}

std::optional<Completion> QueueImpl::Next() {
  if (!ready_.empty()) {
    Completion done = std::move(ready_.front());
    ready_.pop_front();
    return done;
  }
  while (true) {
    // Asked before the last look: what was completed before the end still counts.
    bool over = ring_->life() != QueueRingClient::Life::kOpen;
    CompletionEntry entry;
    if (!ring_->Take(entry)) {
      if (!over || pending_.empty()) return std::nullopt;
      EndAll();
      return ready_.empty() ? std::nullopt : Next();
    }
    if (std::optional<Completion> done = Match(entry)) return done;
  }
}

size_t QueueImpl::Poll(absl::Span<Completion> out) {
  ++stats_.polls;
  size_t count = 0;
  while (count < out.size()) {
    std::optional<Completion> done = Next();
    if (!done) break;
    if (!done->more) --for_poll_;
    out[count++] = *std::move(done);
  }
  if (ring_->EndTake()) ++stats_.doorbells;
  if (count == 0) ++stats_.empty_polls;
  return count;
}

void QueueImpl::Advance() {
  ++stats_.polls;
  std::deque<Completion> earlier;
  earlier.swap(ready_);
  while (std::optional<Completion> done = Next()) earlier.push_back(*std::move(done));
  ready_.swap(earlier);
  if (ring_->EndTake()) ++stats_.doorbells;
}

absl::StatusOr<size_t> QueueImpl::Wait(absl::Span<Completion> out, size_t at_least, Deadline deadline) {
  size_t count = 0;
  while (true) {
    count += Poll(out.subspan(count));
    if (count >= std::min(at_least, out.size()) || for_poll_ == 0) return count;
    if (Await(deadline)) continue;
    // None is lost: they come again.
    while (count > 0) {
      Completion& done = out[--count];
      if (!done.more) ++for_poll_;
      ready_.push_front(std::move(done));
    }
    return MakeError(absl::StatusCode::kDeadlineExceeded, Reason::kWaitTimeout,
                     absl::StrCat("fewer than ", at_least, " transfers completed in time; they go on"));
  }
}

void QueueImpl::Detach() {
  detached_ = true;
  for (Pending& pending : pending_.entries()) {
    if (pending.used && pending.handle != nullptr) pending.handle->queue = nullptr;
  }
}

void QueueImpl::Drain() {
  while (true) {
    Advance();
    ready_.clear();
    if (pending_.empty()) return;
    Await(Deadline::After(absl::InfiniteDuration()));
  }
}

}  // namespace ub
