// A queue: one pair of rings in memory that a session and the daemon share. The client submits transfers, the daemon
// completes them; neither needs a system call while both are awake. The daemon makes the memfd (sealed against shrink,
// grow and further seals; mode 0600; never reused) and an eventfd, and passes both over the lifeline.
//
//   offset 0     QueueHeader     what the rings look like; written once by the daemon, which keeps its own copy
//          256   QueueIndices    six cache lines, see below
//          640   SubmitEntry[sq_entries]      64 bytes each
//          ...   CompletionEntry[cq_entries]  32 bytes each
//
// The life of one entry, and who may take which edge:
//
//        client fills the slot                 daemon copies it out, once       daemon: device or deadline
//   Empty ----------------> Submitted ------------------------> Taken ----------------------> Completed ---> Empty
//            sq_tail+1 (release)           sq_head+1 (release)      cq_tail+1 (release)    client: cq_head+1
//
// Rules.
//  - Indices run freely (mod 2^32); a slot is index & (entries - 1); entries are powers of two.
//  - The daemon takes an entry only when its completions have room: taken and unanswered + unread <= cq_entries. An
//    entry with a deadline may need two places (kCompletionMore).
//  - Everything in here is the client's to scribble on. The daemon copies an entry before it looks at it, checks the
//    copy, and answers what is wrong with an error. Indices that cannot be (more submitted than there are slots, more
//    read than was completed) end the queue (QueueState::kBroken); the daemon trusts only its own sq_head and cq_tail.
//
// Sleeping (no wake-up is lost, see tests/model/queue_wakeup.pml): who wants to sleep announces it, fences, looks once
// more, then sleeps; who publishes something publishes, fences, then looks whether the other sleeps. One of the two
// always sees the other.
//  - daemon: DaemonSleep::kAsleep in `daemon_sleep`, seq_cst fence, reads sq_tail; sleeps in epoll on the eventfd
//    (edge-triggered: it never reads it, for the client holds it too and could make a read block).
//    client: stores sq_tail, seq_cst fence, reads `daemon_sleep`; not kAwake: writes 1 to the eventfd.
//    The same after it has stored cq_head, where an entry may have been refused for want of room. (A client need not:
//    the daemon looks again by itself, only later.)
//  - client: reads `wake_count`, adds 1 to `waiters`, seq_cst fence, reads cq_tail; FUTEX_WAIT on `wake_count` while it
//    has that value.
//    daemon: stores cq_tail, seq_cst fence, reads `waiters`; not 0: adds 1 to `wake_count` and FUTEX_WAKEs it.
#ifndef UB_WIRE_QUEUE_LAYOUT_H_
#define UB_WIRE_QUEUE_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ub::wire {

inline constexpr uint32_t kQueueMagic = 0x51425542;  // "BUBQ"
inline constexpr uint32_t kMinQueueEntries = 2;
inline constexpr uint32_t kMaxQueueEntries = 4096;

enum class Op : uint8_t {
  kNop = 0,     // completes at once: measures the queue itself
  kRead = 1,    // file -> lease
  kWrite = 2,   // lease -> file
  kCopy = 3,    // lease -> target_lease
  kFsync = 4,   // makes earlier completed WRITEs of this file durable
  kCancel = 5,  // ends a transfer of this queue early: `offset` holds its user_data
};

// How a transfer may go. kDefault: as the queue was opened, else as the node is set (`ubctl path`).
enum class PathPolicy : uint8_t { kDefault = 0, kDirectOnly = 1, kPreferDirect = 2, kStagedOnly = 3 };

struct SubmitEntry {
  uint8_t op;              // Op
  uint8_t policy;          // PathPolicy
  uint16_t reserved;       // 0
  uint32_t deadline_ms;    // from when it is taken; 0: none
  uint64_t user_data;      // comes back in the completion
  uint64_t lease;          // READ, WRITE, COPY: the lease that this session holds
  uint32_t generation;     // its low 32 bits
  uint32_t target;         // READ, WRITE, FSYNC: file handle. COPY: low 32 bits of target_lease's generation
  uint64_t offset;         // in the lease
  uint64_t length;         // in bytes; 0 is answered at once, after all checks
  uint64_t target_offset;  // in the file or in target_lease
  uint64_t target_lease;   // COPY: where the bytes go
};
static_assert(sizeof(SubmitEntry) == 64);
static_assert(offsetof(SubmitEntry, user_data) == 8 && offsetof(SubmitEntry, lease) == 16 &&
              offsetof(SubmitEntry, offset) == 32 && offsetof(SubmitEntry, target_lease) == 56);

// How the bytes really went.
enum class Path : uint8_t { kNone = 0, kDirect = 1, kStaged = 2 };
// Why they were staged, or why direct-only failed. Names: PathReasonName.
enum class PathReason : uint8_t {
  kNone = 0,
  kForced = 1,          // staged-only was asked for
  kBelowMinDirect = 2,  // shorter than min_direct_bytes, under prefer-direct
  kUnaligned = 3,       // offset, length or memory is not aligned as the device needs it
  kFsNotTrusted = 4,    // not on the allow-list: libub read or wrote it by itself
  kFsNotProvable = 5,   // the file system does not say (STATX_DIOALIGN) that O_DIRECT is direct
  kFlagsChanged = 6,    // the client changed the flags of a descriptor that the daemon could not reopen
  kDirectRefused = 7,   // the file system refused O_DIRECT for this transfer
  kNoEngine = 8,        // io_uring is not available to the daemon: libub did it
};
enum class MemoryKind : uint8_t { kNone = 0, kHost = 1, kCuda = 2, kFile = 3 };

// Pinned numbers for absl::StatusCode and ub::Reason in one byte each: the reasons that a completion can have.
enum class TransferError : uint8_t {
  kOk = 0,
  kBadEntry = 1,         // INVALID_ARGUMENT: unknown op or policy, reserved bits
  kNoSuchLease = 2,      // NOT_FOUND
  kStaleGeneration = 3,  // FAILED_PRECONDITION
  kOutOfRange = 4,       // OUT_OF_RANGE: beyond the lease, or offset + length overflows
  kReadOnly = 5,         // FAILED_PRECONDITION: lease or file is not writable (WRITE: not readable)
  kNoSuchFile = 6,       // NOT_FOUND
  kPathUnavailable = 7,  // FAILED_PRECONDITION: direct-only, and the PathReason says why not
  kDeadline = 8,         // DEADLINE_EXCEEDED
  kCancelled = 9,        // CANCELLED
  kNoSpace = 10,         // RESOURCE_EXHAUSTED: ENOSPC, EDQUOT, EFBIG
  kDeviceError = 11,     // INTERNAL: EIO and whatever else the device said; `detail` is the errno
  kMemoryTampered = 12,  // DATA_LOSS: the memory's pages were taken away
  kNoSuchTransfer = 13,  // NOT_FOUND: CANCEL of something that is not in flight
  kStopping = 14,        // UNAVAILABLE
  kOverlap = 15,         // INVALID_ARGUMENT: COPY onto itself
};

// More completions with this user_data will come: the caller has its answer, the memory is still in use.
inline constexpr uint8_t kCompletionMore = 1;
// The device moved the bytes to or from memory that was registered before (else the kernel pinned it for this
// transfer).
inline constexpr uint8_t kCompletionRegistered = 2;

struct CompletionEntry {
  uint64_t user_data;
  uint64_t bytes;       // moved; less than asked for where the file ended
  uint8_t error;        // TransferError
  uint8_t path;         // Path
  uint8_t path_reason;  // PathReason
  uint8_t flags;        // kCompletion...
  uint8_t from;         // MemoryKind
  uint8_t to;           // MemoryKind
  uint16_t detail;      // errno of the device, or 0
  uint64_t device_ns;   // from the first post to the last completion of the device
};
static_assert(sizeof(CompletionEntry) == 32);
static_assert(offsetof(CompletionEntry, error) == 16 && offsetof(CompletionEntry, device_ns) == 24);

enum class QueueState : uint32_t { kOpen = 0, kClosed = 1, kBroken = 2 };
enum class DaemonSleep : uint32_t { kAwake = 0, kAsleep = 1 };

struct QueueHeader {
  uint32_t magic;  // kQueueMagic
  uint32_t protocol;
  uint32_t queue;  // id, unique within the session
  uint32_t sq_entries;
  uint32_t cq_entries;
  uint32_t sq_offset;
  uint32_t cq_offset;
  uint32_t reserved;
  uint64_t bytes;  // of the whole memfd
  uint8_t pad[216];
};
static_assert(sizeof(QueueHeader) == 256);

struct QueueIndices {
  alignas(64) std::atomic<uint32_t> sq_tail;     // client
  alignas(64) std::atomic<uint32_t> sq_head;     // daemon
  std::atomic<uint32_t> daemon_sleep;            // daemon: DaemonSleep
  std::atomic<uint32_t> state;                   // daemon: QueueState
  alignas(64) std::atomic<uint32_t> cq_tail;     // daemon
  alignas(64) std::atomic<uint32_t> cq_head;     // client
  alignas(64) std::atomic<uint32_t> waiters;     // client
  alignas(64) std::atomic<uint32_t> wake_count;  // daemon, and the client for itself; the futex
};
static_assert(sizeof(QueueIndices) == 384);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

inline constexpr size_t kQueueIndicesOffset = 256;
inline constexpr size_t kSubmitRingOffset = 640;
static_assert(kSubmitRingOffset == kQueueIndicesOffset + sizeof(QueueIndices) && kSubmitRingOffset % 64 == 0);

// Where everything lies in a queue's memory. Entries must be powers of two within the limits above.
struct QueueLayout {
  uint32_t sq_entries = 0;
  uint32_t cq_entries = 0;
  size_t cq_offset() const { return kSubmitRingOffset + size_t{sq_entries} * sizeof(SubmitEntry); }
  // Rounded up to 4 KiB pages.
  size_t bytes() const { return (cq_offset() + size_t{cq_entries} * sizeof(CompletionEntry) + 4095) & ~size_t{4095}; }
};

}  // namespace ub::wire

#endif  // UB_WIRE_QUEUE_LAYOUT_H_
