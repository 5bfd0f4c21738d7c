// What stands behind a ub::SlotPool: a lease, which of its slots are free, and which are in flight. Thread-safe. Lives
// until the SlotPool is gone and no transfer uses a slot.
#ifndef UB_SRC_SLOT_POOL_IMPL_H_
#define UB_SRC_SLOT_POOL_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "client/src/fork_guard.h"
#include "client/src/lease_impl.h"
#include "client/src/slot_magazines.h"
#include "client/src/use_count.h"
#include "ub/slot_pool.h"

namespace ub {

class SlotPoolImpl {
 public:
  SlotPoolImpl(Lease lease, Bytes slot);
  ~SlotPoolImpl();
  SlotPoolImpl(const SlotPoolImpl&) = delete;
  SlotPoolImpl& operator=(const SlotPoolImpl&) = delete;

  std::optional<uint32_t> Take() { return magazines_.Take(); }
  void Return(uint32_t slot) {
    UseCount* uses = uses_.load(std::memory_order_acquire);
    if (uses != nullptr && uses[slot].Park()) return;
    magazines_.Return(slot);
  }

  // --- transfers. A slot is used only while it is taken.
  void BeginTransfer(uint32_t slot);
  // `known`: the device is done with it. Else the slot is never handed out again. May end the pool.
  void EndTransfer(uint32_t slot, bool known);
  // The SlotPool lets go.
  static void Release(std::unique_ptr<SlotPoolImpl> pool);

  // Slots are packed from the start of each block; what is left at its end is not used.
  size_t OffsetOf(uint32_t slot) const { return slot / per_block_ * block_bytes_ + slot % per_block_ * slot_bytes_; }

  const Lease& lease() const { return lease_; }
  LeaseImpl* lease_impl() const { return LeaseImpl::Of(lease_); }
  std::byte* base() const { return base_; }
  size_t slot_bytes() const { return slot_bytes_; }
  uint32_t slots() const { return slots_; }
  const ForkGuard& guard() const { return guard_; }

  // Which slot that is; null and 0 for an empty one.
  static SlotPoolImpl* PoolOf(const Slot& slot) { return slot.pool_; }
  static uint32_t IndexOf(const Slot& slot) { return slot.index_; }

 private:
  UseCount* Uses();

  Lease lease_;
  std::byte* const base_;
  const size_t slot_bytes_;
  const size_t block_bytes_;
  const uint32_t per_block_;
  const uint32_t slots_;
  SlotMagazines magazines_;
  // Per slot; made by the first transfer, so that pools without any pay nothing.
  std::atomic<UseCount*> uses_{nullptr};
  UseCount transfers_;  // of the whole pool
  ForkGuard guard_;
};

}  // namespace ub

#endif  // UB_SRC_SLOT_POOL_IMPL_H_
