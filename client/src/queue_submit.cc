// QueueImpl: what goes into the ring, and what is done here instead.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/local_io.h"
#include "client/src/queue_impl.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

using wire::SubmitEntry;

absl::Status BadEntry(const char* why) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadEntry, absl::StrCat("ub::Op: ", why));
}

bool IsLocal(const Op& op) { return op.file != nullptr && op.file->local(); }

}  // namespace

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

}  // namespace ub
