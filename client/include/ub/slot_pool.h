// Slots: equal pieces of leases, carved off without a call. Take and return cost nanoseconds: the free slots lie in
// small magazines, each thread takes from a magazine of its own, and moves on to another when that is empty. Any thread
// reaches every free slot, and a slot may be returned by another thread than took it.
//
//   auto pool = ub::SlotPool::Create(client, {.slot = ub::KiB(256), .bytes = ub::MiB(256)});
//   ub::Slot slot = (*pool)->Take();          // empty when all are taken
//   if (slot) Fill(slot.data(), slot.size());  // goes back by itself
#ifndef UB_SLOT_POOL_H_
#define UB_SLOT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ub/client.h"
#include "ub/units.h"

namespace ub {

class SlotPool;
class SlotPoolImpl;

// Move-only; gives itself back when destroyed. Must not outlive its SlotPool. Returned with transfers in flight
// (ub/queue.h) it is free again when they are done.
class Slot {
 public:
  Slot() = default;
  Slot(Slot&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
  Slot& operator=(Slot&& other) noexcept {
    if (this != &other) {
      Return();
      pool_ = std::exchange(other.pool_, nullptr);
      index_ = other.index_;
    }
    return *this;
  }
  ~Slot() { Return(); }

  explicit operator bool() const { return pool_ != nullptr; }
  std::byte* data() const;
  size_t size() const;
  // A slot never crosses a block border, so [ub_addr, ub_addr + size) is one range for every device.
  UbAddr ub_addr() const;
  void Return();

 private:
  friend class SlotPool;
  friend class SlotPoolImpl;
  Slot(SlotPoolImpl* pool, uint32_t index) : pool_(pool), index_(index) {}
  SlotPoolImpl* pool_ = nullptr;
  uint32_t index_ = 0;
};

struct SlotPoolOptions {
  std::string pool;  // empty: the daemon's first
  Bytes slot;        // size of a slot: at least 64 bytes, a multiple of 64, at most a block
  Bytes bytes;       // how much to lease
  absl::Duration wait = absl::ZeroDuration();
};

// Thread-safe. Holds its leases until destroyed; return all slots before. Slots that were returned with transfers in
// flight may still be so: then the leases go when the transfers are done.
class SlotPool {
 public:
  static absl::StatusOr<std::unique_ptr<SlotPool>> Create(Client& client, const SlotPoolOptions& options);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // A free slot; an empty Slot when there is none anywhere, or in a forked child. Never blocks in the kernel.
  Slot Take();
  uint32_t slots() const;
  size_t slot_size() const;
  // Ok, or why the pool must no longer be used: REVOKED, SESSION_ENDED, FORKED.
  absl::Status Check() const;

 private:
  explicit SlotPool(std::unique_ptr<SlotPoolImpl> impl);
  std::unique_ptr<SlotPoolImpl> impl_;
};

}  // namespace ub

#endif  // UB_SLOT_POOL_H_
