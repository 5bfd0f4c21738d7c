// Holds one lease until a signal (exit 0), the lease's end (1) or the daemon's (3). Asleep meanwhile.
#ifndef UB_UBCTL_LEASE_HOLD_H_
#define UB_UBCTL_LEASE_HOLD_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/ubctl/output.h"
#include "ub/units.h"

namespace ub::ctl {

struct HoldOptions {
  std::string pool;
  Bytes bytes;
  absl::Duration wait;
  std::optional<absl::Duration> ttl;
  bool touch = false;
};

ExitCode HoldLease(const Context& context, const HoldOptions& options);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LEASE_HOLD_H_
