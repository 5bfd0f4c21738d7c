// Who uses how much, and what the limits say to that. Leased and waited-for bytes are counted per uid and per session,
// retired and tested ones per uid. Not thread-safe: under the Broker's lock.
#ifndef UBD_CORE_QUOTA_H_
#define UBD_CORE_QUOTA_H_

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "daemon/core/requests.h"

namespace ubd {

struct Usage {
  Bytes leased;   // until the last pin of an ended lease is gone
  Bytes waited;   // by requests in a queue
  Bytes retired;  // of a uid only
  // Of a uid only: of ended leases, while the memory layer looks whether they come free or are retired. No part of the
  // total; but as they may become one, nothing is granted meanwhile that the limit would not hold with them.
  Bytes tested;
  uint64_t waiters = 0;

  Bytes total() const { return leased + waited + retired; }
  friend bool operator==(const Usage&, const Usage&) = default;
};

// A limit that does not hold `asked` more.
struct OverQuota {
  bool of_session = false;  // else of the uid
  Bytes limit;
  Bytes used;
  Bytes asked;
};

class QuotaBook {
 public:
  explicit QuotaBook(const BrokerLimits& limits) : limits_(limits) {}

  std::optional<Bytes> LimitOf(Uid uid) const;
  // The tighter of both limits for one request or one session.
  std::optional<Bytes> TightestLimit(Uid uid) const;
  Usage OfUid(Uid uid) const;
  Usage OfSession(SessionId session) const;

  // Which limit stands in the way of `asked` more, if any. With asked = 0: which one is exceeded already.
  std::optional<OverQuota> Check(SessionId session, Uid uid, Bytes asked) const;

  // `uid` may have `asked` more only once the tests of what it gave back are over.
  bool TestsMayExceed(Uid uid, Bytes asked) const;

  void AddLeased(SessionId session, Uid uid, Bytes bytes);
  void SubLeased(SessionId session, Uid uid, Bytes bytes);
  void AddWaiter(SessionId session, Uid uid, Bytes bytes);
  void SubWaiter(SessionId session, Uid uid, Bytes bytes);
  void AddRetired(Uid uid, Bytes bytes);
  void SubRetired(Uid uid, Bytes bytes);
  void AddTested(Uid uid, Bytes bytes);
  void SubTested(Uid uid, Bytes bytes);

  const absl::flat_hash_map<Uid, Usage>& uids() const { return uids_; }
  const absl::flat_hash_map<SessionId, Usage>& sessions() const { return sessions_; }

 private:
  const BrokerLimits& limits_;  // the Broker's, so that a reload shows at once
  // Only those that use something.
  absl::flat_hash_map<Uid, Usage> uids_;
  absl::flat_hash_map<SessionId, Usage> sessions_;
};

}  // namespace ubd

#endif  // UBD_CORE_QUOTA_H_
