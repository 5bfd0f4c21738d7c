// libub: lease memory from ubd.
//
//   auto client = ub::Client::Connect({});                        // one per process; thread-safe
//   auto lease = (*client)->Acquire({.bytes = ub::MiB(64)});        // mapped, contiguous, ready to touch
//   std::memcpy(lease->data(), source, n);
//   auto ticket = lease->Share({.access = ub::Access::kReadOnly, .uid = ub::Uid(1001)});   // hand ticket->text() to
//   the consumer
//                                                                  // ~Lease gives it back (or keeps it cached, still
//                                                                  mapped)
//
// Errors are absl::Status; ub::ReasonOf (ub/error.h) tells causes apart: NOT_RUNNING (no daemon), NOT_ANSWERING
// (stalled), VERSION_MISMATCH, QUOTA_EXCEEDED, POOL_EMPTY, WAIT_TIMEOUT, FORKED and so on. Nothing here throws, and
// nothing raises SIGPIPE or SIGBUS.
//
// After fork the child must not use the parent's Client, Leases or Slots: their memory is not mapped there
// (MADV_DONTFORK) and calls return FAILED_PRECONDITION/FORKED; destroying them there is harmless and frees nothing. A
// child of a process that had connected cannot Connect either (FORKED: gRPC does not survive a fork): let it exec a
// program that connects, or fork before the first Connect. exec ends the session.
#ifndef UB_CLIENT_H_
#define UB_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ub/error.h"
#include "ub/lease.h"
#include "ub/units.h"

namespace ub {

struct ConnectOptions {
  // Of the daemon. Empty: $UB_RUNTIME_DIR, else /run/ubd for root, else $XDG_RUNTIME_DIR/ubd, else /tmp/ubd-UID.
  std::string runtime_dir;
  // For connect and handshake together.
  absl::Duration deadline = absl::Seconds(5);
  // Shown in listings; default: the process's name.
  std::string name;
  // How much released memory may stay cached, mapped and charged to this process until the daemon recalls it. 0: none.
  Bytes cache_limit = Bytes(UINT64_MAX);
};

struct AcquireOptions {
  std::string pool;                            // empty: the daemon's first
  Bytes bytes;                                 // at least 1; rounded up to whole blocks
  absl::Duration wait = absl::ZeroDuration();  // how long to wait for free memory; zero: not at all
  std::optional<absl::Duration> ttl;           // the lease ends by itself after this; such a lease is never cached
  bool cacheable = true;
};

struct RegisterOptions {
  Bytes offset;                        // in the memfd; a multiple of its page size
  Bytes size;                          // a multiple of its page size, at most 1 GiB
  Access access = Access::kReadWrite;  // what transfers may do
  absl::Duration deadline = absl::Seconds(5);
};

// What happened to this session's leases. Called on libub's event thread: be quick, and do not call libub from it.
struct Event {
  enum class Kind { kRecalled, kRevoked, kExpired, kOwnerReleased, kStopping, kDisconnected };
  Kind kind;
  LeaseId lease;  // 0 for kStopping and kDisconnected
  std::string text;
};
using EventCallback = std::function<void(const Event&)>;

// Counts since Connect.
struct ClientStats {
  uint64_t rpcs = 0;           // calls to the daemon
  uint64_t leases = 0;         // leases handed out by Acquire and Attach
  uint64_t cache_hits = 0;     // of these, served from the cache
  uint64_t recalled = 0;       // cached leases that the daemon took back
  uint64_t blocks_mapped = 0;  // mmap calls for blocks
  uint64_t cached_bytes = 0;   // in the cache now
};

class TransferHost;

class Client {
 public:
  // One session with the daemon.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options);
  // Gives back everything cached. Leases that are still held end with the session: destroy them first, and queues.
  virtual ~Client() = default;

  virtual absl::StatusOr<Lease> Acquire(const AcquireOptions& options) = 0;
  // Redeems a ticket made by Lease::Share; works once, for the uid named there.
  virtual absl::StatusOr<Lease> Attach(const Ticket& ticket, absl::Duration deadline = absl::Seconds(5)) = 0;
  // Makes a range of a memfd of this process's own a lease like any other, registered with the devices once, now. The
  // memfd must be sealed against shrinking and growing and have all its pages; `fd` stays the caller's. Charged to this
  // uid's quota, never cached, and gone with the lease or the session. BAD_MEMORY or BAD_FIELD say what it would have
  // to be.
  virtual absl::StatusOr<Lease> Register(int fd, const RegisterOptions& options) = 0;
  // One round trip to the daemon.
  virtual absl::Status Ping(absl::Duration deadline = absl::Seconds(5)) = 0;
  // Gives all cached leases back to the daemon.
  virtual absl::Status DropCache() = 0;

  virtual void OnEvent(EventCallback callback) = 0;
  virtual SessionId session() const = 0;
  virtual ClientStats stats() const = 0;

 private:
  friend class File;
  friend class Queue;
  // What they need of this session; FORKED in a child.
  virtual absl::StatusOr<TransferHost*> Transfers() = 0;
};

}  // namespace ub

#endif  // UB_CLIENT_H_
