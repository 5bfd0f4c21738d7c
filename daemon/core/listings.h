// Snapshots for listings: consistent at one moment, cut to what the viewer may see.
#ifndef UBD_CORE_LISTINGS_H_
#define UBD_CORE_LISTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/requests.h"

namespace ubd {

// free + leased + cached + draining + recycling = total, always.
struct PoolListing {
  PoolSpec spec;
  uint64_t free = 0, leased = 0, cached = 0, draining = 0, recycling = 0;
  uint64_t retired = 0;  // beside the total
  uint64_t waiters = 0;
};

struct BlockListing {
  Block block;
  std::string pool;
  std::optional<LeaseId> lease;  // only where the viewer may see it
  uint64_t in_flight = 0;
};

struct HolderListing {
  SessionId session;
  int32_t pid = 0;
  Uid uid;
  std::string name;
  Access access = Access::kReadWrite;
  bool advisory = false;
};

struct LeaseListing {
  LeaseId id;
  SessionId owner;
  std::string pool;
  Bytes bytes;
  uint64_t blocks = 0;
  Generation generation;
  std::vector<HolderListing> holders;  // the owner first
  absl::Duration age;
  uint64_t in_flight = 0;
  std::optional<absl::Duration> draining_for;  // state "draining": since when
  std::string state;                           // "held", "cached", "draining"
  std::optional<absl::Duration> ttl_left;      // never negative
};

struct SessionListing {
  SessionFacts facts;
  absl::Duration age;
  uint64_t leases = 0;
  Bytes bytes;
  uint64_t waiters = 0;
  std::optional<Bytes> quota;  // the tighter of the session's and the uid's
  Bytes uid_bytes;             // leased, waited for and retired, of the whole uid
};

struct BrokerTotals {
  uint64_t sessions = 0, leases = 0, waiters = 0;
  uint64_t reclaimed_sessions = 0, reclaimed_leases = 0;
  bool draining = false, stopping = false;
};

}  // namespace ubd

#endif  // UBD_CORE_LISTINGS_H_
