// Who waits for one pool, in the order of first asking. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_WAIT_QUEUE_H_
#define UBD_CORE_WAIT_QUEUE_H_

#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "daemon/core/requests.h"

namespace ubd {

using WaiterId = uint64_t;

struct Waiter {
  WaiterId id = 0;  // rises with every waiter: the order of the queue
  AcquireRequest request;
  GrantCallback done;
  Uid uid;
  PoolId pool;
  uint32_t blocks = 0;
  Bytes bytes;  // whole blocks
  std::optional<absl::Duration> ttl;
  MonoTime since;
  MonoTime deadline;
  bool patient = false;  // asked not to wait; waits only for memory that is on its way
};

class WaitQueue {
 public:
  bool empty() const { return waiters_.empty(); }
  size_t size() const { return waiters_.size(); }
  // Blocks asked for by all together.
  uint64_t demand() const { return demand_; }

  // `waiter.id` must be larger than any before.
  void Push(Waiter waiter) {
    demand_ += waiter.blocks;
    waiters_.emplace_hint(waiters_.end(), waiter.id, std::move(waiter));
  }
  // Null when there is none. Valid until the next change.
  Waiter* Head() { return waiters_.empty() ? nullptr : &waiters_.begin()->second; }
  Waiter* Find(WaiterId id) {
    auto it = waiters_.find(id);
    return it == waiters_.end() ? nullptr : &it->second;
  }
  std::optional<Waiter> Remove(WaiterId id) {
    auto it = waiters_.find(id);
    if (it == waiters_.end()) return std::nullopt;
    std::optional<Waiter> waiter = std::move(it->second);
    waiters_.erase(it);
    demand_ -= waiter->blocks;
    return waiter;
  }
  const absl::btree_map<WaiterId, Waiter>& all() const { return waiters_; }

 private:
  absl::btree_map<WaiterId, Waiter> waiters_;
  uint64_t demand_ = 0;
};

}  // namespace ubd

#endif  // UBD_CORE_WAIT_QUEUE_H_
