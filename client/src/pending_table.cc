#include "client/src/pending_table.h"

#include <utility>

namespace ub {

PendingTable::PendingTable(uint32_t places) : entries_(places) {
  free_.reserve(places);
  for (uint32_t i = places; i-- > 0;) free_.push_back(i);
}

Pending& PendingTable::Add(const Op& op, std::shared_ptr<TransferImpl> handle) {
  uint32_t index = free_.back();
  free_.pop_back();
  Pending& pending = entries_[index];
  pending.tag = op.entry.user_data;
  pending.length = op.entry.length;
  // A place gets another number each time.
  pending.id = ((pending.id >> 32) + 1) << 32 | index;
  pending.lease = op.pool == nullptr ? op.lease : nullptr;
  pending.target = op.target_lease;
  pending.pool = op.pool;
  pending.slot = op.slot;
  pending.used = true;
  pending.answered = false;
  pending.silent = false;
  if (pending.lease != nullptr) pending.lease->BeginTransfer();
  if (pending.target != nullptr) pending.target->BeginTransfer();
  if (pending.pool != nullptr) pending.pool->BeginTransfer(pending.slot);
  if (op.file != nullptr) pending.file = op.file;
  pending.handle = std::move(handle);
  return pending;
}

Pending* PendingTable::Find(uint64_t id) {
  uint64_t index = id & UINT32_MAX;
  if (index >= entries_.size()) return nullptr;
  Pending& pending = entries_[index];
  return pending.used && pending.id == id ? &pending : nullptr;
}

Pending* PendingTable::FindTag(uint64_t tag) {
  for (Pending& pending : entries_) {
    if (pending.used && !pending.silent && pending.handle == nullptr && pending.tag == tag) return &pending;
  }
  return nullptr;
}

void PendingTable::Remove(Pending& pending, bool known) {
  // First the handle: if it was dropped, what it holds is given back by the transfer's end, and so by nobody who must
  // not wait. And its slot's pool may end below.
  std::shared_ptr<TransferImpl> handle = std::move(pending.handle);
  handle.reset();
  for (LeaseImpl* lease : {pending.lease, pending.target}) {
    if (lease == nullptr) continue;
    if (!known) lease->MarkInDoubt();
    lease->EndTransfer();
  }
  if (pending.pool != nullptr) pending.pool->EndTransfer(pending.slot, known);
  pending.file.reset();
  pending.used = false;
  free_.push_back(static_cast<uint32_t>(&pending - entries_.data()));
}

}  // namespace ub
