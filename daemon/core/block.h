// A block: the unit of allocation, sharing and isolation.
//
//                 grant                       lease ended                    in flight = 0: reclaim ordered
//      Free  --------------->  Leased  --------------------->  Draining  ------------------------------------+
//       ^ |                                                       |  test passed, last uid remembered         |
//       | |  wanted by another uid                                |                                           |
//       | +-------------------------->  Recycling  <--------------+  test failed, or must be fresh            |
//       |                                  |                                                                  |
//       +----------------------------------+  fresh backing is in place                                       |
//       +-----------------------------------------------------------------------------------------------------+
//
// Who takes the edges: grants and lease ends the Broker, under its lock; everything into Free and Recycling after that
// the memory layer, through ReclaimSink (also the Broker). A block leaves Draining only when nothing is pinned or in
// flight on it.
#ifndef UBD_CORE_BLOCK_H_
#define UBD_CORE_BLOCK_H_

#include <cstdint>
#include <optional>

#include "proto/wire/units.h"

namespace ubd {

using ub::Access;
using ub::BlockId;
using ub::Bytes;
using ub::Generation;
using ub::Gid;
using ub::LeaseId;
using ub::PoolId;
using ub::RequestId;
using ub::SessionId;
using ub::UbAddr;
using ub::Uid;

enum class BlockState : uint8_t { kFree, kLeased, kDraining, kRecycling };

// "free", "leased", "draining", "recycling".
const char* BlockStateName(BlockState state);

struct Block {
  BlockId id;
  UbAddr addr;
  BlockState state = BlockState::kFree;
  Generation generation;        // of the last grant
  LeaseId lease;                // while Leased or Draining under a lease; else 0
  std::optional<Uid> last_uid;  // whose bytes the backing may hold; none: clean
  uint64_t recycles = 0;
  uint64_t in_flight = 0;  // ranges being transferred that lie on it, in whole or in part
};

}  // namespace ubd

#endif  // UBD_CORE_BLOCK_H_
