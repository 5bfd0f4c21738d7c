// All moments at which something ends by itself: waits and leases with a TTL. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_DEADLINES_H_
#define UBD_CORE_DEADLINES_H_

#include <cstdint>
#include <optional>

#include "absl/container/btree_set.h"
#include "daemon/core/clock.h"
#include "daemon/core/wait_queue.h"

namespace ubd {

struct Deadline {
  enum class Kind : uint8_t { kWait, kLease };
  MonoTime at;
  Kind kind = Kind::kWait;
  uint64_t id = 0;  // of the waiter or lease
  PoolId pool;
};

class Deadlines {
 public:
  static Deadline Of(const Waiter& waiter) { return {waiter.deadline, Deadline::Kind::kWait, waiter.id, waiter.pool}; }

  // One at MonoTime::Never() is not kept.
  void Add(const Deadline& deadline) {
    if (deadline.at < MonoTime::Never()) all_.insert(deadline);
  }
  void Remove(const Deadline& deadline) { all_.erase(deadline); }
  std::optional<MonoTime> Earliest() const {
    if (all_.empty()) return std::nullopt;
    return all_.begin()->at;
  }
  // Takes out the earliest one that is due.
  std::optional<Deadline> PopDue(MonoTime now) {
    if (all_.empty() || all_.begin()->at > now) return std::nullopt;
    Deadline due = *all_.begin();
    all_.erase(all_.begin());
    return due;
  }
  size_t size() const { return all_.size(); }

 private:
  struct Earlier {
    bool operator()(const Deadline& a, const Deadline& b) const {
      if (!(a.at == b.at)) return a.at < b.at;
      if (a.kind != b.kind) return a.kind < b.kind;
      return a.id < b.id;
    }
  };
  absl::btree_set<Deadline, Earlier> all_;
};

}  // namespace ubd

#endif  // UBD_CORE_DEADLINES_H_
