// Deficit round robin between uids, in bytes: who is served next. Each uid with work gets a quantum a round; what it
// does not use of it carries over while it has work, what it overdraws it pays back. Within a uid its queues take
// turns. Pure; not thread-safe.
#ifndef UBD_ENGINE_FAIR_SHARE_H_
#define UBD_ENGINE_FAIR_SHARE_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "daemon/core/block.h"

namespace ubd {

template <class Work>  // a cheap handle: a pointer
class FairShare {
 public:
  explicit FairShare(uint64_t quantum_bytes) : quantum_(quantum_bytes) {}

  // `work` has something to do for `uid`. Adding what is there already changes nothing.
  void Add(Uid uid, Work work);
  void Remove(Uid uid, Work work);
  // The next to serve; none: nobody has work. It keeps its turn until its uid's quantum is used or it is removed.
  std::optional<Work> Next();
  // `work`, which Next returned, used so many bytes; small ones count as kLeastCost.
  void Charge(Uid uid, Work work, uint64_t bytes);
  bool empty() const { return order_.empty(); }

  static constexpr uint64_t kLeastCost = 4096;

 private:
  struct Share {
    int64_t deficit = 0;
    bool in_turn = false;  // has had this round's quantum
    std::deque<Work> works;
  };
  // The front uid goes to the end of the line.
  void EndTurn(Share& share);

  const uint64_t quantum_;
  std::deque<Uid> order_;  // uids with work; the front one has the turn
  absl::flat_hash_map<Uid, Share> shares_;
};

}  // namespace ubd

#include "daemon/engine/fair_share_impl.h"

#endif  // UBD_ENGINE_FAIR_SHARE_H_
