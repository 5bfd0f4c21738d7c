#include "daemon/session/fd_room.h"

#include <sys/resource.h>

#include <algorithm>

namespace ubd {
namespace {

// The kernel's table grows with the largest number in use; beyond these a huge limit would only cost memory.
constexpr uint64_t kLargestRpcFirst = 32768;
constexpr uint64_t kLargestRpcRange = 65536;

}  // namespace

FdRoom CurrentFdRoom() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
  FdRoom room;
  room.limit = std::min<uint64_t>(limit.rlim_cur, 1u << 30);
  uint64_t headroom = std::clamp<uint64_t>(room.limit / 8, 4, 512);
  uint64_t below = room.limit > headroom ? room.limit - headroom : 0;
  uint64_t first = std::min(room.limit / 2, kLargestRpcFirst);
  room.admit_below = static_cast<int>(below);
  room.rpc_first = static_cast<int>(first);
  room.rpc_last = static_cast<int>(std::min(below, first + kLargestRpcRange));
  return room;
}

void RaiseFdLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace ubd
