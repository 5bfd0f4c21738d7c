// What producer and consumer of the demo say to each other over their socketpair: fixed structs, one a packet. Both are
// the same program, so this is no wire format of the project. The socket blocks; a dead peer is UNAVAILABLE with an
// empty reason. One thread a side.
#ifndef UB_UBCTL_DEMO_MESSAGE_H_
#define UB_UBCTL_DEMO_MESSAGE_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ub/error.h"

namespace ub::ctl {

enum class DemoKind : uint32_t {
  kChunk = 1,   // to the consumer: attach `ticket`, hash `bytes`
  kEnd = 2,     // to the consumer: no more chunks
  kDone = 3,    // from the consumer: chunk `sequence` is hashed and detached
  kResult = 4,  // from the consumer: the hash of everything, and its counts
  kFailed = 5,  // from the consumer: `code`, `reason`, `text`
};

struct DemoMessage {
  DemoKind kind = DemoKind::kEnd;
  int32_t code = 0;
  uint64_t sequence = 0;
  uint64_t bytes = 0;
  std::array<uint8_t, 16> ticket = {};
  std::array<uint8_t, 16> hash = {};
  uint64_t rpcs = 0;
  uint64_t attaches = 0;
  uint64_t bytes_copied = 0;
  uint32_t advisory = 0;
  std::array<char, 48> reason = {};
  std::array<char, 512> text = {};
};

absl::Status SendMessage(int socket, const DemoMessage& message);
// UNAVAILABLE: the peer is gone. DEADLINE_EXCEEDED: it said nothing for so long.
absl::StatusOr<DemoMessage> ReceiveMessage(int socket, absl::Duration patience = absl::InfiniteDuration());
// The same without waiting: nothing when no message is there.
absl::StatusOr<std::optional<DemoMessage>> TryReceiveMessage(int socket);

DemoMessage FailureMessage(const absl::Status& status);
absl::Status FailureStatus(const DemoMessage& message);

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_MESSAGE_H_
