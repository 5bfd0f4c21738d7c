// The functions that make entries.
#include <algorithm>

#include "client/src/file_impl.h"
#include "client/src/lease_impl.h"
#include "client/src/slot_pool_impl.h"
#include "ub/queue.h"

namespace ub {
namespace {

// Rounded up, so that none is early; 0 is no deadline.
uint32_t Milliseconds(absl::Duration deadline) {
  if (deadline == absl::ZeroDuration() || deadline == absl::InfiniteDuration()) return 0;
  int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(deadline, absl::Milliseconds(1)));
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 1, UINT32_MAX));
}

Op Make(wire::Op kind, uint64_t tag, const TransferOptions& options) {
  Op op;
  op.entry.op = static_cast<uint8_t>(kind);
  op.entry.policy = static_cast<uint8_t>(options.path);
  op.entry.deadline_ms = Milliseconds(options.deadline);
  op.entry.user_data = tag;
  return op;
}

void UseFile(Op& op, const File& file, Bytes offset) {
  op.file = FileImpl::Of(file);
  op.entry.target = op.file == nullptr ? 0 : op.file->facts().handle;
  op.entry.target_offset = offset.count();
}

void UseLease(Op& op, LeaseImpl* lease, uint64_t offset, uint64_t length) {
  op.lease = lease;
  op.entry.offset = offset;
  op.entry.length = length;
  if (lease == nullptr) return;
  op.entry.lease = lease->info().id.value();
  op.entry.generation = static_cast<uint32_t>(lease->info().generation.value());
}

void UseSlot(Op& op, const Slot& slot) {
  op.pool = SlotPoolImpl::PoolOf(slot);
  op.slot = SlotPoolImpl::IndexOf(slot);
  if (op.pool != nullptr) UseLease(op, op.pool->lease_impl(), op.pool->OffsetOf(op.slot), slot.size());
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): both ends of a transfer, as the caller names them
Op ReadOp(uint64_t tag, const File& file, Bytes file_offset, const Lease& to, Bytes offset, Bytes length,
          const TransferOptions& options) {
  Op op = Make(wire::Op::kRead, tag, options);
  UseFile(op, file, file_offset);
  UseLease(op, LeaseImpl::Of(to), offset.count(), length.count());
  return op;
}

Op ReadOp(uint64_t tag, const File& file, Bytes file_offset, const Slot& to, const TransferOptions& options) {
  Op op = Make(wire::Op::kRead, tag, options);
  UseFile(op, file, file_offset);
  UseSlot(op, to);
  return op;
}

// NOLINTNEXTLINE(readability-function-size): both ends of a transfer, as the caller names them
Op WriteOp(uint64_t tag, const Lease& from, Bytes offset, Bytes length, const File& file, Bytes file_offset,
           const TransferOptions& options) {
  Op op = Make(wire::Op::kWrite, tag, options);
  UseFile(op, file, file_offset);
  UseLease(op, LeaseImpl::Of(from), offset.count(), length.count());
  return op;
}

Op WriteOp(uint64_t tag, const Slot& from, const File& file, Bytes file_offset, const TransferOptions& options) {
  Op op = Make(wire::Op::kWrite, tag, options);
  UseFile(op, file, file_offset);
  UseSlot(op, from);
  return op;
}

// NOLINTNEXTLINE(readability-function-size): both ends of a transfer, as the caller names them
Op CopyOp(uint64_t tag, const Lease& from, Bytes offset, const Lease& to, Bytes to_offset, Bytes length,
          const TransferOptions& options) {
  Op op = Make(wire::Op::kCopy, tag, options);
  UseLease(op, LeaseImpl::Of(from), offset.count(), length.count());
  op.target_lease = LeaseImpl::Of(to);
  op.entry.target_offset = to_offset.count();
  if (op.target_lease == nullptr) return op;
  op.entry.target_lease = op.target_lease->info().id.value();
  op.entry.target = static_cast<uint32_t>(op.target_lease->info().generation.value());
  return op;
}

Op FsyncOp(uint64_t tag, const File& file) {
  Op op = Make(wire::Op::kFsync, tag, {});
  UseFile(op, file, Bytes(0));
  return op;
}

Op NopOp(uint64_t tag) { return Make(wire::Op::kNop, tag, {}); }

}  // namespace ub
