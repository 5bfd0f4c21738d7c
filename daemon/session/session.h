// One client process as the kernel attests it, and its lifeline. The session ends when the lifeline hangs up or the
// pidfd fires, whichever comes first; never by a timeout. Thread-safe.
#ifndef UBD_SESSION_SESSION_H_
#define UBD_SESSION_SESSION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/broker.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// Opens one more description of a block's backing, for one holder (Memory::OpenForHolder).
using HolderFdOpener = std::function<absl::StatusOr<ub::UniqueFd>(BlockId, Access)>;

// The kernel's word on a peer, taken when its socket was accepted.
struct PeerIdentity {
  int32_t pid = 0;  // 0: in a PID namespace that this daemon does not see into
  Uid uid;
  Gid gid;
  ub::UniqueFd pidfd;       // invalid where none could be had
  uint64_t start_time = 0;  // field 22 of /proc/PID/stat; 0 unknown
  std::string source;       // "peer-pidfd", "pidfd", "client-pidfd", "none"
};

class Session {
 public:
  virtual ~Session() = default;
  virtual const SessionFacts& facts() const = 0;

  // Sends the fds of a grant down the lifeline, in Grant frames, and calls `first` once: OK after the first batch is in
  // the socket (answer the RPC then), or the error (the Broker has been told by FailDelivery, unless the lease or the
  // session had ended anyway). Up to 253 blocks come in one frame, unless this process is short of descriptors; larger
  // grants go on as the client reads, and what a client does not read holds up only its own grants. `pin` is held
  // while fds are being sent. While a delivery waits it is let go, so that a lease that ends meanwhile (an RPC that
  // gives up calls Broker::Abandon) frees its blocks; the delivery is dropped then. Of a lease that is delivered again,
  // an older delivery that has not begun ends as ABORTED/SUPERSEDED. Never blocks.
  virtual void Deliver(const Grant& grant, LeasePin pin, std::function<void(absl::Status)> first) = 0;

  // Sends a queue's memory and eventfd in a QueueGrant frame. OK once they are in the socket; RESOURCE_EXHAUSTED when
  // the client does not read (no waiting here). Never blocks.
  virtual absl::Status DeliverQueue(const ub::wire::QueueGrant& grant, ub::UniqueFd memory, ub::UniqueFd event) = 0;
  // The descriptor that came in the Offer frame of this number; calls `take` once: at once, or when the frame comes, or
  // with NO_SUCH_OFFER after `patience`, or SESSION_ENDED. The frame may still be on its way when the RPC that names it
  // is here already.
  virtual void TakeOffer(uint64_t offer, absl::Duration patience,
                         std::function<void(absl::StatusOr<ub::UniqueFd>)> take) = 0;

  virtual uint64_t fds_in_flight() const = 0;
};

// All live sessions. Thread-safe.
class SessionRegistry {
 public:
  virtual ~SessionRegistry() = default;
  // By the token of an RPC (32 hex digits), compared in constant time, for a connection of `uid`. Null: unknown, ended,
  // or another uid's.
  virtual std::shared_ptr<Session> Find(std::string_view token_hex, Uid uid) const = 0;
  virtual std::shared_ptr<Session> Find(SessionId id) const = 0;
  // Sum of the advisory take-back counters of all pages, past sessions included.
  virtual uint64_t TakeBacks() const = 0;
};

}  // namespace ubd

#endif  // UBD_SESSION_SESSION_H_
