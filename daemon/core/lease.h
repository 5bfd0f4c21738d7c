// One lease: N blocks, who owns it, who else holds it, and what will have to happen to its memory. A plain record;
// lease_life.h has its life.
#ifndef UBD_CORE_LEASE_H_
#define UBD_CORE_LEASE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/clock.h"
#include "daemon/core/memory.h"
#include "daemon/core/requests.h"

namespace ubd {

struct Holder {
  SessionId session;
  Uid uid;
  int32_t pid = 0;
  std::string name;
  Access access = Access::kReadWrite;
  bool advisory = false;
};

struct Lease {
  LeaseId id;
  Generation generation;
  PoolId pool;  // kOwnPool for a client's own memory
  Bytes bytes;
  Bytes block_bytes;
  std::vector<BlockId> blocks;  // in mapping order
  std::optional<Block> own;     // a client's own memory: its one block, which no pool has
  RequestId request;
  Holder owner;
  std::vector<Holder> shares;  // attached now
  std::vector<Uid> ever;       // every uid that has held it, the owner's first
  std::vector<Uid> exposed;    // of shares that ended without a detach
  bool unclean = false;        // a holder died, or a delivery failed: fresh backing, however it ends
  std::optional<uint32_t> word;
  MonoTime granted;
  std::optional<MonoTime> expires;
  uint64_t pins = 0;         // of the whole lease and of ranges
  uint64_t range_pins = 0;   // of these, of ranges: transfers
  bool passed_over = false;  // was wanted back while pinned
  // Set when the lease has ended; carried out when the last pin is gone.
  std::optional<ReclaimOrder> end;
  MonoTime ended;  // when that was

  // The owner or an attached share; null: `session` does not hold it.
  const Holder* HolderOf(SessionId session) const {
    if (owner.session == session) return &owner;
    for (const Holder& share : shares) {
      if (share.session == session) return &share;
    }
    return nullptr;
  }
};

}  // namespace ubd

#endif  // UBD_CORE_LEASE_H_
