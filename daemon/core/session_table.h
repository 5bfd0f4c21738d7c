// All open sessions, with what each has asked for and holds. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_SESSION_TABLE_H_
#define UBD_CORE_SESSION_TABLE_H_

#include <memory>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/core/requests.h"
#include "daemon/core/wait_queue.h"

namespace ubd {

// What has become of a request: a wait or a lease.
struct RequestRecord {
  uint64_t claim = 0;   // of the latest call
  WaiterId waiter = 0;  // 0: it has become a lease
  PoolId pool;
  LeaseId lease;
};

struct SessionRecord {
  SessionFacts facts;
  MonoTime opened;
  // Only those that wait or whose lease lives.
  absl::flat_hash_map<RequestId, RequestRecord> requests;
  absl::btree_set<LeaseId> owned;
  absl::btree_set<LeaseId> attached;
};

class SessionTable {
 public:
  // Does nothing when it is open already.
  bool Open(const SessionFacts& facts, MonoTime now) {
    auto [it, added] = sessions_.try_emplace(facts.id);
    if (added) it->second = std::make_unique<SessionRecord>(SessionRecord{facts, now, {}, {}, {}});
    return added;
  }
  void Close(SessionId id) { sessions_.erase(id); }
  // Null: closed, or never opened. Stays valid until closed.
  SessionRecord* Find(SessionId id) const {
    auto it = sessions_.find(id);
    return it == sessions_.end() ? nullptr : it->second.get();
  }
  size_t size() const { return sessions_.size(); }
  const absl::btree_map<SessionId, std::unique_ptr<SessionRecord>>& all() const { return sessions_; }

 private:
  absl::btree_map<SessionId, std::unique_ptr<SessionRecord>> sessions_;
};

}  // namespace ubd

#endif  // UBD_CORE_SESSION_TABLE_H_
