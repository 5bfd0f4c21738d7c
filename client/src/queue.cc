// The public Queue: asks whether it is in the process that opened it, then leaves everything to QueueImpl.
#include "ub/queue.h"

#include <utility>

#include "client/src/queue_impl.h"
#include "proto/wire/error.h"

namespace ub {

absl::StatusOr<std::unique_ptr<Queue>> Queue::Open(Client& client, const QueueOptions& options) {
  absl::StatusOr<TransferHost*> host = client.Transfers();
  if (!host.ok()) return host.status();
  absl::StatusOr<QueueParts> parts = (*host)->OpenQueue(options, Deadline::After(options.deadline));
  if (!parts.ok()) return parts.status();
  return std::unique_ptr<Queue>(new Queue(std::make_unique<QueueImpl>(*host, *std::move(parts), options.path)));
}

Queue::Queue(std::unique_ptr<QueueImpl> impl) : impl_(std::move(impl)) {}

Queue::~Queue() {
  if (impl_->guard().forked()) {
    (void)impl_.release();  // everything behind it is the parent's; see fork_guard.h
    return;
  }
  impl_->Detach();
  TransferHost* host = impl_->host();
  host->CloseQueue(std::move(impl_));
}

absl::Status Queue::Submit(absl::Span<const Op> ops) {
  if (impl_->guard().forked()) return impl_->guard().Check();
  return impl_->Submit(ops);
}

uint32_t Queue::Room() const { return impl_->guard().forked() ? 0 : impl_->Room(); }

size_t Queue::Poll(absl::Span<Completion> out) { return impl_->guard().forked() ? 0 : impl_->Poll(out); }

absl::StatusOr<size_t> Queue::Wait(absl::Span<Completion> out, size_t at_least, absl::Duration deadline) {
  if (impl_->guard().forked()) return impl_->guard().Check();
  return impl_->Wait(out, at_least, Deadline::After(deadline));
}

absl::Status Queue::Cancel(uint64_t tag) {
  if (impl_->guard().forked()) return impl_->guard().Check();
  return impl_->CancelTag(tag);
}

uint32_t Queue::in_flight() const { return impl_->in_flight(); }
Queue::Stats Queue::stats() const { return impl_->stats(); }
uint32_t Queue::id() const { return impl_->id(); }
Bytes Queue::batch_bytes() const { return impl_->batch_bytes(); }

absl::StatusOr<Transfer> Queue::Start(const Op& op, Slot slot, Lease lease) {
  if (impl_->guard().forked()) return impl_->guard().Check();
  auto transfer = std::make_shared<TransferImpl>(std::move(slot), std::move(lease));
  transfer->queue = impl_.get();
  if (absl::Status bad = impl_->Submit({&op, 1}, transfer); !bad.ok()) return bad;
  return Transfer(std::move(transfer));
}

absl::StatusOr<Transfer> Queue::Read(const File& file, Bytes file_offset, Slot to, const TransferOptions& options) {
  Op op = ReadOp(0, file, file_offset, to, options);
  return Start(op, std::move(to), Lease());
}

absl::StatusOr<Transfer> Queue::Read(const File& file, Bytes file_offset, Lease to, const TransferOptions& options) {
  Op op = ReadOp(0, file, file_offset, to, Bytes(0), Bytes(to.size()), options);
  return Start(op, Slot(), std::move(to));
}

absl::StatusOr<Transfer> Queue::Write(Slot from, const File& file, Bytes file_offset, const TransferOptions& options) {
  Op op = WriteOp(0, from, file, file_offset, options);
  return Start(op, std::move(from), Lease());
}

absl::StatusOr<Transfer> Queue::Write(Lease from, const File& file, Bytes file_offset, const TransferOptions& options) {
  Op op = WriteOp(0, from, Bytes(0), Bytes(from.size()), file, file_offset, options);
  return Start(op, Slot(), std::move(from));
}

}  // namespace ub
