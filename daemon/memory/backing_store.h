// One pool's backings that stand behind no block: clean ones in reserve, retired ones that somebody still holds, dead
// ones to be freed; and the blocks that wait for a clean one.
//
//      made --> clean --(a block takes it)--> [behind a block] --+--> retired --(sole-held at last)--> dead --> freed
//                 ^                                               +--------------------------------------^
//                 +-- or straight to the block that waits longest
//
// In all, wherever they stand, there are never more than `limit` (blocks + reserve): so a uid that hoards old backings
// starves the reserve, never the machine. Thread-safe. `poke` is called, without the lock, whenever the provisioner may
// have something to do.
#ifndef UBD_MEMORY_BACKING_STORE_H_
#define UBD_MEMORY_BACKING_STORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "daemon/core/clock.h"
#include "daemon/core/memory.h"
#include "daemon/memory/memfd_backing.h"
#include "proto/wire/mutex.h"

namespace ubd {

// A backing taken from a block, and whom it is charged to.
struct OldBacking {
  std::unique_ptr<MemfdBacking> backing;
  BlockId block;
  Charge charge;
  bool was_retired = false;
};

// What the provisioner does next.
struct FreeJob {
  OldBacking old;
};
struct MakeJob {};
// Nothing now; but where making failed, not before `retry`.
struct NoJob {
  MonoTime retry = MonoTime::Never();
};
using ProvisionJob = std::variant<NoJob, FreeJob, MakeJob>;

class BackingStore {
 public:
  BackingStore(uint64_t limit, uint64_t reserve) : limit_(limit), reserve_(reserve) {}
  // Before any other thread uses the store.
  void OnWork(std::function<void()> poke) { poke_ = std::move(poke); }

  // --- boot
  // A backing that stands behind a block, or goes to the reserve.
  void CountInstalled();
  void AddClean(std::unique_ptr<MemfdBacking> backing);

  // --- reclaimer
  // Null when there is none, or when blocks wait that come first.
  std::unique_ptr<MemfdBacking> TakeClean();
  // One step, so that none slips in between: a clean one if there is one by now, else null and the block gets the next
  // that is made.
  std::unique_ptr<MemfdBacking> TakeCleanOrWait(BlockId block);
  // Nobody else holds it: to be freed.
  void Discard(OldBacking old);
  // Somebody may still hold it.
  void Retire(OldBacking old);
  // Tests every retired backing; those that nobody holds any more become dead. Returns how many are left.
  size_t SweepRetired();

  // --- provisioner. Frees come before makes. Every job must be answered: Freed, or Made or MakeFailed.
  ProvisionJob NextJob(MonoTime now);
  void Freed();
  // The block that it goes to, if one waits; else it has gone to the reserve and `backing` is empty.
  std::optional<BlockId> Made(std::unique_ptr<MemfdBacking>& backing);
  void MakeFailed(MonoTime now);

  uint64_t Clean() const;
  // Backings of this pool in all.
  uint64_t Total() const;

 private:
  std::unique_ptr<MemfdBacking> TakeCleanLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t limit_;
  const uint64_t reserve_;
  std::function<void()> poke_;
  mutable ub::Mutex mu_;
  uint64_t total_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t making_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<MemfdBacking>> clean_ ABSL_GUARDED_BY(mu_);
  std::vector<OldBacking> retired_ ABSL_GUARDED_BY(mu_);
  std::deque<OldBacking> dead_ ABSL_GUARDED_BY(mu_);
  std::deque<BlockId> waiting_ ABSL_GUARDED_BY(mu_);
  // After a failed make: no other before retry_, unless something is freed.
  absl::Duration back_off_ ABSL_GUARDED_BY(mu_);
  MonoTime retry_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_MEMORY_BACKING_STORE_H_
