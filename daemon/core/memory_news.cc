#include "daemon/core/memory_news.h"

#include "absl/strings/str_cat.h"

namespace ubd {

void MemoryNews::Free(BlockId block, bool fresh) {
  PoolState* pool = data_.PoolOf(block);
  if (pool == nullptr) return;
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
  if (pool != nullptr && pool->blocks.Recycle(block)) pool->dirty = true;
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
