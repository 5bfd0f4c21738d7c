// The free blocks of one pool, sorted by whose bytes they may still hold: nobody's (clean) or one uid's. Not
// thread-safe: under the Broker's lock. Every call is O(log uids).
#ifndef UBD_CORE_FREE_LISTS_H_
#define UBD_CORE_FREE_LISTS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "daemon/core/block.h"

namespace ubd {

class FreeLists {
 public:
  // `last_uid` none: clean.
  void Put(BlockId block, std::optional<Uid> last_uid);

  size_t size() const { return size_; }
  // How many `uid` may have at once: its own and the clean ones.
  size_t UsableBy(Uid uid) const;
  // One of these, its own first (most recently used first); none left: nullopt.
  std::optional<BlockId> TakeFor(Uid uid);
  // One with some other uid's bytes.
  std::optional<BlockId> TakeForeign(Uid uid);

 private:
  std::vector<BlockId> clean_;
  absl::btree_map<Uid, std::vector<BlockId>> used_;  // no list is empty
  size_t size_ = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_FREE_LISTS_H_
