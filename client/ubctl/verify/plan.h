// What one stream of `verify` writes and reads back in one round: pieces of many lengths at many offsets, with guard
// bytes between them in the blocks and in the file. Follows from the seed alone. Pure.
#ifndef UB_UBCTL_VERIFY_PLAN_H_
#define UB_UBCTL_VERIFY_PLAN_H_

#include <cstdint>
#include <vector>

#include "ub/queue_layout.h"
#include "ub/units.h"

namespace ub::ctl {

struct Piece {
  uint64_t source = 0;  // offset in the block that is written
  uint64_t target = 0;  // offset in the block that it is read back into
  uint64_t file = 0;    // offset in the file
  uint64_t length = 0;
  wire::PathPolicy policy = wire::PathPolicy::kPreferDirect;  // direct-only pieces are aligned for it
};

struct StreamPlan {
  std::vector<Piece> pieces;
  uint64_t file_bytes = 0;  // guard bytes included
  uint64_t source_seed = 0;
  uint64_t target_guard_seed = 0;
  uint64_t file_guard_seed = 0;
};

// `memory`: size of each of the two blocks, at least 1 MiB. `align`: what direct transfers need; 0: no direct pieces,
// the file cannot do them. Pieces never share a page, in memory or in the file: a direct and a cached write to one page
// at the same time are not defined by the kernel.
StreamPlan MakePlan(uint64_t seed, uint64_t stream, Bytes memory, Bytes align);

}  // namespace ub::ctl

#endif  // UB_UBCTL_VERIFY_PLAN_H_
