// Share tickets: random, for one uid, good once, until a deadline or the lease's end. Expired ones are dropped when
// looked at, so that none needs a timer; their number per lease is bounded. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_TICKET_BOOK_H_
#define UBD_CORE_TICKET_BOOK_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/core/requests.h"

namespace ubd {

struct TicketRecord {
  LeaseId lease;
  Access access = Access::kReadOnly;
  Uid uid;
  MonoTime expires;
};

class TicketBook {
 public:
  static constexpr size_t kMaxPerLease = 256;

  // False: the lease has kMaxPerLease tickets out already, or the id exists.
  bool Add(const TicketId& id, const TicketRecord& ticket, MonoTime now);
  // None: no such ticket, expired, or not for `uid`.
  std::optional<TicketRecord> Find(const TicketId& id, Uid uid, MonoTime now) const;
  void Remove(const TicketId& id);
  void RemoveAllOf(LeaseId lease);
  size_t size() const { return tickets_.size(); }

 private:
  absl::flat_hash_map<TicketId, TicketRecord> tickets_;
  absl::flat_hash_map<LeaseId, std::vector<TicketId>> by_lease_;
};

}  // namespace ubd

#endif  // UBD_CORE_TICKET_BOOK_H_
