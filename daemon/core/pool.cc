#include "daemon/core/pool.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ubd {

Pool::Pool(PoolId id, const PoolSpec& spec, BlockId first, UbAddr start)
    : id_(id), spec_(spec), first_(first.value()), slots_(spec.blocks) {
  for (uint32_t i = spec.blocks; i-- > 0;) {  // the lowest is taken first
    slots_[i].block.id = BlockId(first_ + i);
    slots_[i].block.addr = start + spec.block_bytes * i;
    free_.Put(slots_[i].block.id, std::nullopt);
  }
  counts_[static_cast<size_t>(BlockState::kFree)] = spec.blocks;
}

std::vector<const Block*> Pool::blocks() const {
  std::vector<const Block*> all;
  all.reserve(slots_.size());
  for (const Slot& slot : slots_) all.push_back(&slot.block);
  return all;
}

void Pool::Move(Slot& slot, BlockState to) {
  --counts_[static_cast<size_t>(slot.block.state)];
  slot.block.state = to;
  ++counts_[static_cast<size_t>(to)];
}

uint32_t Pool::UsableBy(Uid uid) const { return static_cast<uint32_t>(free_.UsableBy(uid)); }

std::vector<BlockId> Pool::Take(Uid uid, uint32_t n, LeaseId lease, Generation generation) {
  std::vector<BlockId> taken;
  taken.reserve(n);
  while (taken.size() < n) {
    std::optional<BlockId> id = free_.TakeFor(uid);
    if (!id) break;
    Slot& slot = At(*id);
    Move(slot, BlockState::kLeased);
    slot.block.lease = lease;
    slot.block.generation = generation;
    taken.push_back(*id);
  }
  return taken;
}

std::vector<BlockId> Pool::TakeForeign(Uid uid, uint32_t n) {
  std::vector<BlockId> taken;
  while (taken.size() < n) {
    std::optional<BlockId> id = free_.TakeForeign(uid);
    if (!id) break;
    Slot& slot = At(*id);
    Move(slot, BlockState::kRecycling);
    slot.next_uid = std::nullopt;
    slot.from_free = true;
    ++coming_fresh_;
    taken.push_back(*id);
  }
  return taken;
}

void Pool::Drain(BlockId id, std::optional<Uid> next_uid) {
  Slot& slot = At(id);
  Move(slot, BlockState::kDraining);
  slot.next_uid = next_uid;
}

void Pool::ReclaimOrdered(BlockId id, Uid owner) {
  Slot& slot = At(id);
  slot.tested_for = owner;
  slot.block.lease = LeaseId();
  ++in_test_;
}

bool Pool::Recycle(BlockId id) {
  Slot& slot = At(id);
  if (slot.block.state != BlockState::kDraining || !slot.tested_for) return false;
  Move(slot, BlockState::kRecycling);
  slot.next_uid = std::nullopt;
  slot.tested_for.reset();
  --in_test_;
  return true;
}

Pool::Freed Pool::Free(BlockId id, bool fresh) {
  Slot& slot = At(id);
  bool draining = slot.block.state == BlockState::kDraining && slot.tested_for;
  if (!draining && slot.block.state != BlockState::kRecycling) return Freed::kIgnored;
  if (!fresh && !slot.next_uid) return Freed::kMustBeFresh;
  if (draining) --in_test_;
  if (slot.from_free) --coming_fresh_;
  slot.tested_for.reset();
  slot.from_free = false;
  Move(slot, BlockState::kFree);
  slot.block.last_uid = fresh ? std::nullopt : std::exchange(slot.next_uid, std::nullopt);
  slot.next_uid = std::nullopt;
  if (fresh) ++slot.block.recycles;
  // Without isolation it does not matter whose bytes there are.
  free_.Put(id, spec_.isolation == Isolation::kNone ? std::nullopt : slot.block.last_uid);
  return Freed::kFree;
}

absl::Status Pool::Check() const {
  std::array<uint32_t, 4> counts = {};
  uint32_t coming = 0;
  uint32_t test = 0;
  for (const Slot& slot : slots_) {
    ++counts[static_cast<size_t>(slot.block.state)];
    if (slot.from_free) ++coming;
    if (slot.tested_for) ++test;
    bool leased = slot.block.state == BlockState::kLeased;
    bool pinned = slot.block.state == BlockState::kDraining && !slot.tested_for;
    if ((slot.block.lease != LeaseId()) != (leased || pinned)) {
      return absl::InternalError(absl::StrCat("block ", slot.block.id.value(), " names a lease in the wrong state"));
    }
    if (slot.block.in_flight > 0 && slot.block.lease == LeaseId()) {
      return absl::InternalError(absl::StrCat("block ", slot.block.id.value(), " has transfers but no lease"));
    }
  }
  if (counts != counts_) return absl::InternalError(absl::StrCat("state counts of pool ", spec_.name));
  if (counts[0] != free_.size()) return absl::InternalError(absl::StrCat("free lists of pool ", spec_.name));
  if (coming != coming_fresh_ || test != in_test_) {
    return absl::InternalError(absl::StrCat("reclaim counts of pool ", spec_.name));
  }
  return absl::OkStatus();
}

}  // namespace ubd
