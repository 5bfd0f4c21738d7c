// Proof that RPCs are served: now and then one real Health.Check over a fresh connection to the daemon's own socket,
// through the accept loop, the identity check and the completion queue, as any client's would go. Only its answer feeds
// the service manager's watchdog.
#ifndef UBD_WATCHDOG_H_
#define UBD_WATCHDOG_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace ubd {

class Watchdog {
 public:
  virtual ~Watchdog() = default;
  // `alive` is called for each good answer, on the watchdog's thread. Checks that take longer than `deadline` count as
  // failed.
  static std::unique_ptr<Watchdog> Create(std::string socket_path, absl::Duration deadline,
                                          std::function<void()> alive);
  // Starts a check, unless one is under way. Never blocks; for the event loop's timer.
  virtual void Check() = 0;
};

}  // namespace ubd

#endif  // UBD_WATCHDOG_H_
