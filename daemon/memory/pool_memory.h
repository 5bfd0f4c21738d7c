// One pool: which backing stands behind which block, each under its block's own lock, and the store of those that stand
// behind none. Thread-safe. A block's lock is the one that the sole-holder test and every reopen of its backing need.
#ifndef UBD_MEMORY_POOL_MEMORY_H_
#define UBD_MEMORY_POOL_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/memory/backing_store.h"
#include "daemon/memory/memory.h"
#include "daemon/memory/preflight.h"
#include "daemon/memory/witness.h"
#include "proto/wire/mutex.h"

namespace ubd {

// What the kernel says about a block's backing.
enum class Holding : uint8_t {
  kSole,   // nobody else holds it
  kHeld,   // somebody does
  kEmpty,  // there is no backing: the block waits for one
};

struct Examination {
  Holding holding = Holding::kEmpty;
  bool witness_complete = false;  // looked at only when kSole and asked for
  std::string tampering;          // not empty: pages were taken away by a holder
};

class PoolMemory {
 public:
  // `first` is the id of the pool's first block.
  PoolMemory(PoolPlan plan, BlockId first);

  BlockId first() const { return first_; }
  bool Has(BlockId block) const { return block >= first_ && block.value() - first_.value() < plan_.blocks; }
  const PoolPlan& plan() const { return plan_; }
  BackingStore& store() { return store_; }
  const BackingStore& store() const { return store_; }
  BackingSpec Spec() const;

  // All for blocks that this pool has.
  void Install(BlockId block, std::unique_ptr<MemfdBacking> backing);
  std::unique_ptr<MemfdBacking> TakeOut(BlockId block);
  absl::StatusOr<ub::UniqueFd> OpenForHolder(BlockId block, Access access);
  // Null address: the block has no backing now.
  MappedBlock Locate(BlockId block) const;
  // Something may have faulted through the mapping (Memory::Touched).
  void Touched(BlockId block);
  // Sole holder first; then, if `pagemap` is given, the witness: no punch can follow the first. A touched backing is
  // registered anew before it counts as complete.
  Examination Examine(BlockId block, const Pagemap* pagemap);
  // Shows on the first block, before anybody has it, that both tests tell the truth about this pool's kind of memory.
  absl::Status Probe(const Pagemap& pagemap);
  // "yes", or "no: why".
  std::string Locked() const;

 private:
  struct Slot {
    ub::Mutex mu;
    std::unique_ptr<MemfdBacking> backing ABSL_GUARDED_BY(mu);
    bool touched ABSL_GUARDED_BY(mu) = false;
  };
  Slot& SlotOf(BlockId block) const { return *slots_[block.value() - first_.value()]; }

  const PoolPlan plan_;
  const BlockId first_;
  std::vector<std::unique_ptr<Slot>> slots_;
  BackingStore store_;
  // Where small pages may become huge ones behind everybody's back, an absent page proves nothing.
  bool absence_proves_;
};

}  // namespace ubd

#endif  // UBD_MEMORY_POOL_MEMORY_H_
