#include "client/src/queue_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/daemon_errors.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

using wire::CompletionEntry;

absl::Status InDoubt() {
  return MakeError(absl::StatusCode::kAborted, Reason::kInDoubt,
                   "the queue ended while this transfer was in flight: whether it happened is unknown; check, or do it "
                   "again on a new queue");
}

}  // namespace

Completion QueueImpl::FromEntry(const CompletionEntry& entry, uint64_t tag) {
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

QueueImpl::~QueueImpl() {
  host_->RemoveRing(ring_.get());
  EndAll();  // as a rule nothing is pending any more
}

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
