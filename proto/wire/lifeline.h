// The lifeline: a SOCK_SEQPACKET Unix socket between one session and the daemon. It proves who the client is (the
// kernel's credentials), carries file descriptors, and by its hang-up tells of the session's end. One packet is one
// frame; every frame starts with FrameHeader.
//
//   client                             daemon
//     | Hello [pidfd]  ---------------->  |   credentials come from the kernel, never from the frame
//     | <------------- Welcome [page fd]  |   session id, token for the RPCs, limits, the lease-word page
//     |          or <------------ Refuse  |   and the daemon hangs up
//     | <-------------- Grant [1..253 fd] |   one or more per Acquire or Attach, in block order
//     | <------------------- GrantFailed  |   the rest of that lease will not come
//     | <------------ QueueGrant [2 fds]  |   one per OpenQueue
//     | Offer [1 fd]  ----------------->  |   a file or memfd of the client's own, for OpenFile or RegisterMemory
//
// After Hello the client sends nothing but Offers. The daemon learns from the kernel (SIOCOUTQ) that a frame was taken,
// so a client that does not read delays only its own grants. Both sides read a frame once, into their own memory, and
// check before use. All fields are in host byte order: the socket never leaves the machine.
#ifndef UB_WIRE_LIFELINE_H_
#define UB_WIRE_LIFELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace ub::wire {

// SCM_MAX_FD of the kernel: at most so many descriptors in one packet.
inline constexpr size_t kMaxFdsPerFrame = 253;
inline constexpr uint32_t kFrameMagic = 0x4c42557f;  // "\x7fUBL"
inline constexpr size_t kMaxFrameBytes = 512;

enum class FrameType : uint16_t {
  kHello = 1,
  kWelcome = 2,
  kRefuse = 3,
  kGrant = 4,
  kGrantFailed = 5,
  kQueueGrant = 6,
  kOffer = 7
};

struct FrameHeader {
  uint32_t magic;     // kFrameMagic
  uint16_t type;      // FrameType
  uint16_t reserved;  // 0
  uint32_t size;      // of the whole frame
  uint32_t protocol;  // sender's ProtocolVersion(); this header never changes, so any two versions can name each other
};
static_assert(sizeof(FrameHeader) == 16);

// Carries at most one fd: a pidfd of the sender, used only where the kernel cannot name the peer (another PID
// namespace, Linux < 6.5).
struct Hello {
  FrameHeader header;
  int32_t pid;  // in the client's own PID namespace; shown, never trusted
  uint32_t flags;
  std::array<char, 32> name;  // for listings; NUL-padded
};
static_assert(sizeof(Hello) == 56);

// Carries one fd: the lease-word page (proto/wire/lease_word.h).
struct Welcome {
  FrameHeader header;
  uint64_t session;
  std::array<uint8_t, 16> token;  // the secret of this session: metadata `ub-token` of its RPCs, as 32 hex digits
  uint64_t boot_id;               // differs for every start of the daemon
  uint32_t word_count;
  uint32_t max_fds_in_flight;
};
static_assert(sizeof(Welcome) == 56);

// Never carries an fd.
struct Refuse {
  FrameHeader header;
  int32_t code;  // gRPC status code
  uint32_t daemon_protocol;
  std::array<char, 48> reason;  // ReasonName; NUL-padded
  std::array<char, 256> text;   // cause and cure; NUL-padded
};
static_assert(sizeof(Refuse) == 328);

// Carries `count` fds: blocks first .. first+count-1 of `total`, in mapping order.
struct Grant {
  FrameHeader header;
  uint64_t lease;
  uint64_t generation;
  uint32_t first;
  uint32_t count;
  uint32_t total;
  uint32_t access;  // ub::Access
  // Which delivery of this lease the frame belongs to: a retried request is delivered anew.
  uint64_t delivery;
};
static_assert(sizeof(Grant) == 56);

// Never carries an fd. Fds of the lease that came before are void: the lease has ended.
struct GrantFailed {
  FrameHeader header;
  uint64_t lease;
  uint64_t generation;
  int32_t code;
  uint32_t reserved;
  std::array<char, 48> reason;
  std::array<char, 256> text;
};
static_assert(sizeof(GrantFailed) == 344);
static_assert(sizeof(GrantFailed) <= kMaxFrameBytes);

// Carries two fds: the queue's memory (proto/wire/queue_layout.h) and its eventfd.
struct QueueGrant {
  FrameHeader header;
  uint32_t queue;
  uint32_t sq_entries;
  uint32_t cq_entries;
  uint32_t reserved;
};
static_assert(sizeof(QueueGrant) == 32);

// Client to daemon. Carries one fd. The daemon keeps the newest kMaxOffers until an RPC names them, and closes older
// ones.
struct Offer {
  FrameHeader header;
  uint64_t offer;  // chosen by the client, never 0, never used twice by one session
};
static_assert(sizeof(Offer) == 24);
inline constexpr size_t kMaxOffers = 64;

}  // namespace ub::wire

#endif  // UB_WIRE_LIFELINE_H_
