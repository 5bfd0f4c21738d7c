#include "daemon/core/memory_news.h"

#include "absl/strings/str_cat.h"

namespace ubd {

void MemoryNews::Free(BlockId block, bool fresh) {
  PoolState* pool = data_.PoolOf(block);
  if (pool == nullptr) return;
  std::optional<Uid> tested = pool->blocks.TestedFor(block);
  switch (pool->blocks.Free(block, fresh)) {
    case Pool::Freed::kIgnored:
      return;
    case Pool::Freed::kMustBeFresh: {
      ReclaimOrder order;
      order.must_be_fresh = true;
      data_.deps.memory.Reclaim(block, std::move(order));
      return;
    }
    case Pool::Freed::kFree:
      pool->dirty = true;
      if (tested) TestEnded(*tested, pool->blocks.spec().block_bytes);
      break;
  }
  if (!fresh) return;
  data_.Emit(Event{.kind = EventKind::kRecycled,
                   .pool = pool->blocks.spec().name,
                   .bytes = pool->blocks.spec().block_bytes,
                   .text = absl::StrCat("block ", block.value())});
}

void MemoryNews::Recycling(BlockId block) {
  PoolState* pool = data_.PoolOf(block);
  if (pool == nullptr) return;
  std::optional<Uid> tested = pool->blocks.TestedFor(block);
  if (!pool->blocks.Recycle(block)) return;
  pool->dirty = true;
  TestEnded(*tested, pool->blocks.spec().block_bytes);
}

// What is retired is charged before its block gets here, so that the uid's account never shows less than it holds.
void MemoryNews::TestEnded(Uid uid, Bytes bytes) {
  data_.quotas.SubTested(uid, bytes);
  if (data_.quotas.OfUid(uid).waiters == 0) return;
  for (PoolState& pool : data_.pools) pool.dirty = true;  // it may wait for its account in any of them
}

void MemoryNews::Retired(BlockId block, const Charge& charge) {
  PoolState* pool = data_.PoolOf(block);
  if (pool == nullptr) return;
  ++pool->retired;
  for (Uid uid : charge) data_.quotas.AddRetired(uid, pool->blocks.spec().block_bytes);
  pool->dirty = true;
}

void MemoryNews::RetiredFreed(BlockId block, const Charge& charge) {
  PoolState* pool = data_.PoolOf(block);
  if (pool == nullptr || pool->retired == 0) return;
  --pool->retired;
  for (Uid uid : charge) data_.quotas.SubRetired(uid, pool->blocks.spec().block_bytes);
  pool->dirty = true;
}

void MemoryNews::Tampering(BlockId block, const Charge& charge, const std::string& what) {
  PoolState* pool = data_.PoolOf(block);
  if (pool == nullptr) return;
  Event event{.kind = EventKind::kTampered,
              .pool = pool->blocks.spec().name,
              .bytes = pool->blocks.spec().block_bytes,
              .text = absl::StrCat("block ", block.value(), ": ", what)};
  if (charge.empty()) data_.Emit(event);
  for (Uid uid : charge) {  // one for each who may have done it, so that each sees its own
    event.uid = uid;
    data_.Emit(event);
  }
}

}  // namespace ubd
