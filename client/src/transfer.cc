// The public Transfer: one entry by handle.
#include <utility>

#include "client/src/queue_impl.h"
#include "client/src/transfer_impl.h"
#include "proto/wire/error.h"
#include "ub/queue.h"

namespace ub {
namespace {

absl::Status NoTransfer() {
  return MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchTransfer,
                   "this Transfer holds nothing: it was never started, or moved from");
}

Completion Only(absl::Status status, bool more) {
  Completion completion;
  completion.status = std::move(status);
  completion.more = more;
  return completion;
}

absl::Status NotYet() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, Reason::kTransferDeadline,
                   "the transfer is still in flight; it goes on, and its memory is in use until it ends");
}

}  // namespace

Transfer::Transfer() = default;
Transfer::Transfer(std::shared_ptr<TransferImpl> impl) : impl_(std::move(impl)) {}
Transfer::Transfer(Transfer&&) noexcept = default;
Transfer& Transfer::operator=(Transfer&&) noexcept = default;
Transfer::~Transfer() = default;

bool Transfer::Done() {
  if (impl_ == nullptr) return false;
  if (impl_->done()) return true;
  if (impl_->queue == nullptr || impl_->queue->guard().forked()) return false;
  impl_->queue->Advance();
  return impl_->done();
}

Completion Transfer::Wait(absl::Duration deadline) {
  if (impl_ == nullptr) return Only(NoTransfer(), false);
  Deadline until = Deadline::After(deadline);
  while (!Done()) {
    if (impl_->answered) {
      impl_->answered = false;
      return impl_->completion;
    }
    QueueImpl* queue = impl_->queue;
    if (queue == nullptr) {
      impl_->AwaitDone(until.left());
    } else if (queue->guard().forked()) {
      return Only(queue->guard().Check(), true);
    } else {
      queue->Await(until);
    }
    if (until.passed() && !Done() && !impl_->answered) return Only(NotYet(), true);
  }
  return impl_->completion;
}

const Completion& Transfer::completion() const {
  static const auto* const kNone = new Completion;
  return impl_ == nullptr ? *kNone : impl_->completion;
}

absl::Status Transfer::Cancel() {
  if (impl_ == nullptr) return NoTransfer();
  if (impl_->done() || impl_->queue == nullptr) {
    return wire::TransferStatus({.error = static_cast<uint8_t>(wire::TransferError::kNoSuchTransfer)});
  }
  if (impl_->queue->guard().forked()) return impl_->queue->guard().Check();
  return impl_->queue->CancelId(impl_->id);
}

namespace {

// What a Transfer that holds none, or is in flight, shows. Per thread, so that assigning to it harms nobody.
template <class T>
T& Nothing() {
  thread_local T nothing;
  nothing = T();
  return nothing;
}

}  // namespace

Slot& Transfer::slot() { return impl_ != nullptr && impl_->done() ? impl_->slot : Nothing<Slot>(); }
Lease& Transfer::lease() { return impl_ != nullptr && impl_->done() ? impl_->lease : Nothing<Lease>(); }

}  // namespace ub
