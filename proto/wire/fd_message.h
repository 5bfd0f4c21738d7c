// Packets with file descriptors over a SEQPACKET socket. Used by both ends of the lifeline. Thread-safe: no state.
#ifndef UB_WIRE_FD_MESSAGE_H_
#define UB_WIRE_FD_MESSAGE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/unique_fd.h"

namespace ub::wire {

struct Packet {
  std::vector<std::byte> bytes;  // empty: the peer hung up
  std::vector<UniqueFd> fds;     // all close-on-exec
  bool fds_truncated = false;    // MSG_CTRUNC: this process had no room for all fds; those that came are in `fds`
};

// Sends one packet with at most kMaxFdsPerFrame fds; never blocks, never raises SIGPIPE. Errors carry errno in the
// detail "errno": EAGAIN (the peer does not read), ETOOMANYREFS (too many fds in flight), EPIPE.
absl::Status SendPacket(int socket, absl::Span<const std::byte> bytes, absl::Span<const int> fds);

// Receives one packet of at most `most_bytes`; never blocks: EAGAIN is RESOURCE_EXHAUSTED with the detail "errno" 11.
// A longer packet is INVALID_ARGUMENT/MALFORMED_FRAME, its fds closed.
absl::StatusOr<Packet> ReceivePacket(int socket, size_t most_bytes = kMaxFrameBytes);
// The same, and no fd enters this process: the kernel drops those that came, and fds_truncated says so. For whoever
// cannot afford to close what a stranger sent.
absl::StatusOr<Packet> ReceiveBytes(int socket);

// The raw bytes of a frame struct.
template <class Frame>
absl::Span<const std::byte> AsBytes(const Frame& frame) {
  return {reinterpret_cast<const std::byte*>(&frame), sizeof(Frame)};
}

}  // namespace ub::wire

#endif  // UB_WIRE_FD_MESSAGE_H_
