// The service protocol: READY, STATUS, EXTEND_TIMEOUT_USEC, WATCHDOG, STOPPING, RELOADING; sockets passed by systemd. Everything is a no-op
// where there is no service manager. Thread-safe.
#ifndef UBD_SERVICE_NOTIFY_H_
#define UBD_SERVICE_NOTIFY_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

void NotifyStatus(std::string_view status);
// Progress at boot: STATUS, and more start time, only when `done` grew since the last call; in all at most `cap`.
class BootNotifier {
 public:
  explicit BootNotifier(absl::Duration cap) : cap_(cap) {}
  void Progress(std::string_view what, uint64_t done, uint64_t total);

 private:
  absl::Duration cap_;
  absl::Duration granted_;
  uint64_t last_done_ = 0;
  std::optional<absl::Time> last_sent_;
};
void NotifyReady(std::string_view status);
void NotifyReloading();
void NotifyStopping(std::string_view status);
void NotifyWatchdog();
// How often the manager wants WATCHDOG=1; none: not at all.
std::optional<absl::Duration> WatchdogPeriod();

// Sockets passed by the manager, by FileDescriptorName; close-on-exec set.
std::map<std::string, ub::UniqueFd> PassedSockets();

}  // namespace ubd

#endif  // UBD_SERVICE_NOTIFY_H_
