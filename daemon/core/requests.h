// What goes into and comes out of the Broker.
#ifndef UBD_CORE_REQUESTS_H_
#define UBD_CORE_REQUESTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/block.h"
#include "daemon/core/clock.h"

namespace ubd {

// Who may follow whom on one backing: see ub.v1.Isolation.
enum class Isolation : uint8_t { kPerUid, kNone };

struct PoolSpec {
  std::string name;
  std::string kind;  // "host", "cuda:N"
  Bytes block_bytes;
  uint32_t blocks = 0;
  Isolation isolation = Isolation::kPerUid;
};

// Where leases of clients' own memory are listed; they are in no pool. Their blocks are of kind "host".
inline constexpr PoolId kOwnPool(UINT32_MAX);
inline constexpr char kOwnPoolName[] = "own";

// Limits of the Broker; none means no limit.
struct BrokerLimits {
  std::optional<Bytes> default_per_uid;
  std::optional<Bytes> default_per_session;
  std::map<Uid, Bytes> per_uid;
  absl::Duration max_wait = absl::Hours(1);
  std::optional<absl::Duration> max_ttl;
  absl::Duration ticket_ttl = absl::Seconds(60);
  uint32_t max_waiters_per_uid = 1024;
  uint32_t max_leases_per_session = 65536;
  uint32_t max_own_per_uid = 256;  // ranges of own memory: so that no uid takes all that the node has room for
  absl::Duration recall_grace = absl::Milliseconds(20);
};

struct SessionFacts {
  SessionId id;
  Uid uid;
  int32_t pid = 0;
  std::string name;
  std::string identity;             // where the pidfd came from
  bool read_only_advisory = false;  // the kernel cannot hold this uid to read-only (daemon's own uid, root)
};

// A part of a lease that a transfer is about to use.
struct RangeRequest {
  SessionId session;
  LeaseId lease;
  uint32_t generation = 0;  // low 32 bits
  Bytes offset;
  Bytes length;
  Access needed = Access::kReadOnly;
};

// A piece of a range that lies within one block.
struct Piece {
  BlockId block;
  Bytes offset;  // in the block
  Bytes length;
};

// How a session ended. Whatever it still held gets fresh backing.
enum class SessionEnd : uint8_t { kHangUp, kDied, kProtocol, kShutdown };

struct AcquireRequest {
  SessionId session;
  std::string pool;  // empty: the first
  Bytes bytes;
  RequestId request;
  absl::Duration wait;  // zero: do not wait
  std::optional<absl::Duration> ttl;
  bool cacheable = false;
};

struct GrantedBlock {
  BlockId block;
  UbAddr addr;
};

struct Grant {
  LeaseId lease;
  Generation generation;
  PoolId pool;
  Bytes block_bytes;
  std::vector<GrantedBlock> blocks;
  Access access = Access::kReadWrite;
  bool read_only_advisory = false;
  std::optional<uint32_t> word;
  std::optional<MonoTime> expires;
  bool repeated = false;  // the same request id had this lease already
};

// Called once, without the Broker's lock, on whatever thread made the grant possible.
using GrantCallback = std::function<void(absl::StatusOr<Grant>)>;

using TicketId = std::array<uint8_t, 16>;

struct ShareRequest {
  SessionId session;
  LeaseId lease;
  Access access = Access::kReadOnly;
  Uid uid;
  std::optional<absl::Duration> ticket_ttl;
};

struct Ticket {
  TicketId id;
  absl::Duration expires_in;
};

// Who asks for a listing or a revoke, and what it may see.
struct Viewer {
  bool admin = false;
  Uid uid;
};

}  // namespace ubd

#endif  // UBD_CORE_REQUESTS_H_
