// The daemon's own descriptor numbers: how many there may be, which part is kept free for serving the clients that it
// has, and where the RPC connections' numbers come from. Thread-safe: no state; the limits are read each time, for an
// operator may change them.
#ifndef UBD_SESSION_FD_ROOM_H_
#define UBD_SESSION_FD_ROOM_H_

#include <cstdint>

namespace ubd {

struct FdRoom {
  uint64_t limit = 0;  // RLIMIT_NOFILE, soft
  // The kernel hands out the lowest free number, so a new client whose number is not below this would take what live
  // ones need.
  int admit_below = 0;
  // RPC connections get numbers in [rpc_first, rpc_last), cyclically.
  int rpc_first = 0;
  int rpc_last = 0;
};

FdRoom CurrentFdRoom();

// Soft limit up to the hard one. Best effort: what was reached is in CurrentFdRoom.
void RaiseFdLimit();

}  // namespace ubd

#endif  // UBD_SESSION_FD_ROOM_H_
