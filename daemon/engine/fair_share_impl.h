// The body of FairShare; included by fair_share.h only.
#ifndef UBD_ENGINE_FAIR_SHARE_IMPL_H_
#define UBD_ENGINE_FAIR_SHARE_IMPL_H_

#include <algorithm>

#include "daemon/engine/fair_share.h"

namespace ubd {

template <class Work>
void FairShare<Work>::Add(Uid uid, Work work) {
  Share& share = shares_[uid];
  if (std::find(share.works.begin(), share.works.end(), work) != share.works.end()) return;
  if (share.works.empty()) order_.push_back(uid);
  share.works.push_back(work);
}

template <class Work>
void FairShare<Work>::Remove(Uid uid, Work work) {
  auto found = shares_.find(uid);
  if (found == shares_.end()) return;
  Share& share = found->second;
  auto at = std::find(share.works.begin(), share.works.end(), work);
  if (at == share.works.end()) return;
  share.works.erase(at);
  if (!share.works.empty()) return;
  order_.erase(std::find(order_.begin(), order_.end(), uid));
  share.in_turn = false;
  // Nobody saves up while idle, but a debt stays.
  if (share.deficit >= 0) shares_.erase(found);
}

template <class Work>
std::optional<Work> FairShare<Work>::Next() {
  while (!order_.empty()) {
    Share& share = shares_[order_.front()];
    if (!share.in_turn) {
      share.in_turn = true;
      share.deficit += static_cast<int64_t>(quantum_);
    }
    if (share.deficit > 0) return share.works.front();
    EndTurn(share);
  }
  return std::nullopt;
}

template <class Work>
void FairShare<Work>::Charge(Uid uid, Work work, uint64_t bytes) {
  auto found = shares_.find(uid);
  if (found == shares_.end()) return;
  Share& share = found->second;
  share.deficit -= static_cast<int64_t>(std::max(bytes, kLeastCost));
  if (share.deficit > 0 || !share.in_turn || share.works.empty()) return;
  if (share.works.front() == work) {
    share.works.pop_front();
    share.works.push_back(work);
  }
  EndTurn(share);
}

template <class Work>
void FairShare<Work>::EndTurn(Share& share) {
  share.in_turn = false;
  order_.push_back(order_.front());
  order_.pop_front();
}

}  // namespace ubd

#endif  // UBD_ENGINE_FAIR_SHARE_IMPL_H_
