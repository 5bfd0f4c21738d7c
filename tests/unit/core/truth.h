// What must be true of a Broker at any time, kept apart from it: who had which backing, what is in use, who came first,
// who uses how much.
#ifndef UBD_TESTS_UNIT_CORE_TRUTH_H_
#define UBD_TESTS_UNIT_CORE_TRUTH_H_

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/unit/core/rig.h"

namespace ubd {

inline constexpr uint32_t kBlocks = 10;
inline constexpr int kUids = 3;

struct Call {
  SessionId session;
  uint64_t request = 0;
  uint64_t order = 0;  // of first asking
  uint64_t blocks = 0;
  ClaimId claim = 0;
  int calls = 0;
  bool waiting = false;
};
using CallPtr = std::shared_ptr<Call>;

// A client's own memory, until its end.
struct OwnLease {
  SessionId session;
  Grant grant;
};

// A transfer that is in flight.
struct Flight {
  LeaseId lease;
  RangePin pin;
};

struct Held {
  SessionId owner;
  Grant grant;
  std::set<SessionId> shares;
};

class Truth {
 public:
  Truth() : rig_(OnePool(kBlocks), Limits()) {}

  // Compares all that the Broker says of itself with what is known here.
  void CheckAll();
  int grants() const { return grants_; }

 protected:
  static BrokerLimits Limits() {
    BrokerLimits limits;
    limits.default_per_uid = kBlock * 7;
    limits.default_per_session = kBlock * 6;
    return limits;
  }

  // The answer to `call`: checks everything that a grant must keep to.
  void OnAnswer(Call& call, absl::StatusOr<Grant> result);
  // Leases that the Broker ended by itself (recall, TTL) show in its events.
  void Sync();
  void CheckTransfers();

  Rig rig_;
  std::map<SessionId, Uid> sessions_;
  std::vector<CallPtr> calls_;
  std::map<LeaseId, Held> held_;
  std::map<LeaseId, OwnLease> own_;
  std::map<LeaseId, BlockId> own_ever_;  // ended ones too
  std::vector<LeasePin> pins_;
  std::vector<Flight> flights_;
  std::set<BlockId> in_use_;               // from grant to the end of its reclaim
  std::map<BlockId, std::set<Uid>> seen_;  // who had the backing that the block has now
  std::set<BlockId> dirty_;                // its backing must not be used again
  std::set<LeaseId> unclean_;              // some holder left without a detach
  uint64_t next_request_ = 1;
  uint64_t last_generation_ = 0;
  size_t read_ = 0;
  int grants_ = 0;
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_CORE_TRUTH_H_
