// The other side of doorman.h: what is said over the socket between the two, and the processes at its far end.
#ifndef UBD_SESSION_DOORMAN_PROCESS_H_
#define UBD_SESSION_DOORMAN_PROCESS_H_

#include <array>
#include <cstdint>

#include "daemon/session/doorman.h"
#include "proto/wire/lifeline.h"

namespace ubd {

// With the lifeline.
struct DoormanQuestion {
  uint64_t tag;
  int32_t pid;
  uint32_t uid;
};

// With the descriptor, where it is handed on.
struct DoormanAnswer {
  uint64_t tag;
  int32_t error;
  uint32_t size;
  uint32_t fds;
  uint8_t truncated;
  uint8_t kind;  // Verdict::Kind
  uint16_t reserved;
  std::array<char, 40> file_system;  // NUL-padded
  std::array<std::byte, ub::wire::kMaxFrameBytes> bytes;
};
static_assert(sizeof(DoormanAnswer) == 64 + ub::wire::kMaxFrameBytes);

// Never returns.
[[noreturn]] void KeepReceivers(int socket, int daemon_pid, const OfferJudge& judge);

}  // namespace ubd

#endif  // UBD_SESSION_DOORMAN_PROCESS_H_
