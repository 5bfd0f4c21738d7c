// Which leases of this session are mapped, so that an event of the daemon finds its lease. Thread-safe. Leases enter
// when made and leave when destroyed (LeaseImpl does both).
#ifndef UB_SRC_LEASE_REGISTRY_H_
#define UB_SRC_LEASE_REGISTRY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "proto/wire/mutex.h"
#include "proto/wire/units.h"

namespace ub {

// How the daemon ended a lease.
enum class LeaseEnd : uint8_t { kNot = 0, kRecalled, kRevoked, kExpired, kOwnerReleased, kDisconnected };

// The error that a holder of such a lease gets; OK for kNot.
absl::Status LeaseEndError(LeaseEnd end);

struct LeaseLife {
  explicit LeaseLife(LeaseId lease) : id(lease) {}
  const LeaseId id;
  std::atomic<LeaseEnd> end{LeaseEnd::kNot};
};

class LeaseRegistry {
 public:
  // `life` stays until Remove. If the lease's end was told before its grant had been taken in, it is marked at once.
  void Add(LeaseLife* life);
  void Remove(LeaseLife* life);

  // The first end counts. False: it was known already.
  bool End(LeaseId lease, LeaseEnd end);
  // Leases added later are marked too.
  void EndAll(LeaseEnd end);
  std::vector<LeaseId> Ids() const;

 private:
  // Events and answers come over different streams: an end may be read before the grant it belongs to. So many ends are
  // remembered.
  static constexpr size_t kRemembered = 256;

  mutable Mutex mu_;
  // One lease may be attached twice in one process.
  std::multimap<LeaseId, LeaseLife*> lives_ ABSL_GUARDED_BY(mu_);
  std::array<std::pair<LeaseId, LeaseEnd>, kRemembered> ended_ ABSL_GUARDED_BY(mu_) = {};
  size_t next_ended_ ABSL_GUARDED_BY(mu_) = 0;
  LeaseEnd all_ ABSL_GUARDED_BY(mu_) = LeaseEnd::kNot;
};

}  // namespace ub

#endif  // UB_SRC_LEASE_REGISTRY_H_
