// How many descriptors lie in lifelines, sent but not yet taken. While they are in flight they count against the
// daemon's own descriptor limit (the kernel refuses more with ETOOMANYREFS, for all receivers alike), so each session
// may have at most one full frame of them out, and all sessions of one uid a fair share of half the limit. A client
// that does not read so holds up nobody but itself.
//
// What was taken is the kernel's word: once SIOCOUTQ says that nothing waits in the socket, everything sent before was
// received, or the peer has closed. There is no acknowledgement that a client could forge or withhold.
//
// Thread-safe; holds its lock over one ioctl at most per session concerned, and calls nobody.
#ifndef UBD_SESSION_FD_CREDITS_H_
#define UBD_SESSION_FD_CREDITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/core/block.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"

namespace ubd {

class FdCredits {
 public:
  static constexpr uint64_t kPerSession = ub::wire::kMaxFdsPerFrame;

  // For all uids together, read at each decision.
  using Budget = std::function<uint64_t()>;
  explicit FdCredits(Budget budget) : budget_(std::move(budget)) {}

  // `lifeline` stays open until Close.
  void Open(SessionId session, Uid uid, int lifeline);
  void Close(SessionId session);

  // For whose reading to wait.
  enum class Wait { kNone, kOwn, kUid };
  // Reserves `wanted` (at most kPerSession), all or none: a grant that fits into one frame is not torn. The caller says
  // Sent or Unsent for each. With kUid the session is remembered until Waiters returns it.
  Wait Take(SessionId session, size_t wanted);
  void Sent(SessionId session, size_t count);
  void Unsent(SessionId session, size_t count);

  // Asks the kernel. True when something was taken since.
  bool Refresh(SessionId session);
  uint64_t InFlight(SessionId session);

  // Sessions of the same uid whose reading would make room / that wait for room. Waiters forgets them.
  std::vector<SessionId> Debtors(SessionId of_same_uid);
  std::vector<SessionId> Waiters(SessionId of_same_uid);
  bool HasWaiters(SessionId of_same_uid);

 private:
  struct Account {
    Uid uid;
    int lifeline = -1;
    uint64_t reserved = 0;  // taken, not yet in the socket
    uint64_t sent = 0;
  };
  struct UidAccount {
    std::set<SessionId> sessions;
    std::set<SessionId> waiting;
    uint64_t total = 0;
  };
  bool RefreshLocked(Account& account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t ShareLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  UidAccount* UidOf(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Budget budget_;
  ub::Mutex mu_;
  absl::flat_hash_map<SessionId, Account> accounts_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Uid, UidAccount> uids_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_SESSION_FD_CREDITS_H_
