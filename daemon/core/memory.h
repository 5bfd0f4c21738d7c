// What the Broker needs from memory, and what memory tells the Broker. daemon/memory implements the first, the Broker
// the second; unit tests fake the first.
#ifndef UBD_CORE_MEMORY_H_
#define UBD_CORE_MEMORY_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/block.h"

namespace ubd {

// Whom a retired backing is charged to: the sessions' uids that may still hold it.
using Charge = std::vector<Uid>;

struct ReclaimOrder {
  // Always fresh backing: the last session ended without release, several uids held it, or another uid wants it.
  bool must_be_fresh = false;
  // How long the sole-holder test may be repeated before the block is recycled: the time that an obedient client needs
  // to unmap after a recall or revoke. Zero: one test.
  absl::Duration grace;
  Charge charge;
};

// Called under the Broker's lock: returns at once, never calls back from inside.
class BlockMemory {
 public:
  virtual ~BlockMemory() = default;
  // Makes `block`, on which nothing is in flight, fit for another lease. Ends in ReclaimSink::BlockFree, perhaps after
  // BlockRecycling.
  virtual void Reclaim(BlockId block, ReclaimOrder order) = 0;
  // A client's own memory, whose lease has ended with nothing in flight: unregisters, unmaps and closes it.
  virtual void DropOwn(BlockId block) = 0;
};

// Called from the memory layer's own threads, with none of its locks held.
class ReclaimSink {
 public:
  virtual ~ReclaimSink() = default;
  // The block may serve again. `fresh`: it has new backing that nobody ever saw.
  virtual void BlockFree(BlockId block, bool fresh) = 0;
  // The block waits for fresh backing; a BlockFree follows when there is memory.
  virtual void BlockRecycling(BlockId block) = 0;
  // The old backing was put aside, still charged; freed when nobody else holds it any more. Comes before the block's
  // BlockRecycling or BlockFree, so that its holders' accounts never show less than they hold.
  virtual void BackingRetired(BlockId block, const Charge& charge) = 0;
  virtual void BackingFreed(BlockId block, const Charge& charge) = 0;
  // Pages were missing that nobody but the holders could remove.
  virtual void TamperingFound(BlockId block, const Charge& charge, const std::string& what) = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_MEMORY_H_
