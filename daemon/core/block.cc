#include "daemon/core/block.h"

namespace ubd {

const char* BlockStateName(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return "free";
    case BlockState::kLeased:
      return "leased";
    case BlockState::kDraining:
      return "draining";
    case BlockState::kRecycling:
      return "recycling";
  }
  return "unknown";
}

}  // namespace ubd
