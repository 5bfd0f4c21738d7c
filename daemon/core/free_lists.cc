#include "daemon/core/free_lists.h"

namespace ubd {

void FreeLists::Put(BlockId block, std::optional<Uid> last_uid) {
  if (last_uid) {
    used_[*last_uid].push_back(block);
  } else {
    clean_.push_back(block);
  }
  ++size_;
}

size_t FreeLists::UsableBy(Uid uid) const {
  auto own = used_.find(uid);
  return clean_.size() + (own == used_.end() ? 0 : own->second.size());
}

std::optional<BlockId> FreeLists::TakeFor(Uid uid) {
  auto own = used_.find(uid);
  if (own == used_.end() && clean_.empty()) return std::nullopt;
  std::vector<BlockId>& list = own != used_.end() ? own->second : clean_;
  BlockId block = list.back();
  list.pop_back();
  if (own != used_.end() && list.empty()) used_.erase(own);
  --size_;
  return block;
}

std::optional<BlockId> FreeLists::TakeForeign(Uid uid) {
  auto other = used_.begin();
  if (other != used_.end() && other->first == uid) ++other;
  if (other == used_.end()) return std::nullopt;
  BlockId block = other->second.back();
  other->second.pop_back();
  if (other->second.empty()) used_.erase(other);
  --size_;
  return block;
}

}  // namespace ubd
