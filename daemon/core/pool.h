// One pool's blocks: their states, who used them last, and how many are in each state. It knows which edge of the state
// diagram (block.h) is legal and refuses the others; it knows nothing of leases, queues or memory. Not thread-safe:
// under the Broker's lock.
#ifndef UBD_CORE_POOL_H_
#define UBD_CORE_POOL_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/block.h"
#include "daemon/core/free_lists.h"
#include "daemon/core/requests.h"

namespace ubd {

class Pool {
 public:
  // Blocks `first` .. `first` + spec.blocks - 1, at `start` and on. All free and clean.
  Pool(PoolId id, const PoolSpec& spec, BlockId first, UbAddr start);

  PoolId id() const { return id_; }
  const PoolSpec& spec() const { return spec_; }
  Bytes size() const { return spec_.block_bytes * spec_.blocks; }
  uint32_t count(BlockState state) const { return counts_[static_cast<size_t>(state)]; }
  const Block& block(BlockId id) const { return slots_[id.value() - first_].block; }
  uint64_t& in_flight(BlockId id) { return At(id).block.in_flight; }
  std::vector<const Block*> blocks() const;

  // Blocks that are on their way to Free for sure and soon: sent from Free to get fresh backing.
  uint32_t coming_fresh() const { return coming_fresh_; }
  // Blocks Draining whose reclaim was ordered: each is about to be Free or Recycling.
  uint32_t in_test() const { return in_test_; }

  // Free to Leased. How many `uid` could take now; and taking them (needs UsableBy(uid) >= n).
  uint32_t UsableBy(Uid uid) const;
  std::vector<BlockId> Take(Uid uid, uint32_t n, LeaseId lease, Generation generation);
  // Free to Recycling: at most `n` blocks that hold other uids' bytes. The caller orders their reclaim, always fresh.
  std::vector<BlockId> TakeForeign(Uid uid, uint32_t n);
  // Leased to Draining. `next_uid`: whose bytes the block holds if the old backing passes its test; none: it must get
  // fresh backing.
  void Drain(BlockId id, std::optional<Uid> next_uid);
  // Draining: nothing is in flight any more. `owner`: of the lease that has ended.
  void ReclaimOrdered(BlockId id, Uid owner);
  // Draining, and its reclaim was ordered: whose lease it was. Else none.
  std::optional<Uid> TestedFor(BlockId id) const { return slots_[id.value() - first_].tested_for; }
  // Draining to Recycling. False: not where that may happen.
  bool Recycle(BlockId id);
  // To Free. kMustBeFresh: old backing was offered where only fresh one will do; nothing has changed.
  enum class Freed : uint8_t { kFree, kIgnored, kMustBeFresh };
  Freed Free(BlockId id, bool fresh);

  // Recomputes all counts.
  absl::Status Check() const;

 private:
  struct Slot {
    Block block;
    std::optional<Uid> next_uid;
    std::optional<Uid> tested_for;  // Draining: its reclaim was ordered
    bool from_free = false;         // Recycling: because another uid wanted it
  };
  Slot& At(BlockId id) { return slots_[id.value() - first_]; }
  void Move(Slot& slot, BlockState to);

  PoolId id_;
  PoolSpec spec_;
  uint32_t first_;
  std::vector<Slot> slots_;
  FreeLists free_;
  std::array<uint32_t, 4> counts_ = {};
  uint32_t coming_fresh_ = 0;
  uint32_t in_test_ = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_POOL_H_
