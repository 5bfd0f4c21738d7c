// The service protocol: READY, STATUS, EXTEND_TIMEOUT_USEC, WATCHDOG, STOPPING, RELOADING; sockets passed by systemd.
// Everything is a no-op where there is no service manager. Thread-safe, but for one BootNotifier's Progress: one caller
// at a time.
#ifndef UBD_SERVICE_NOTIFY_H_
#define UBD_SERVICE_NOTIFY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "daemon/core/clock.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

void NotifyStatus(std::string_view status);
// Progress at boot: STATUS, and more start time, only when `done` grew since the last call; in all at most `cap`,
// counted from the first call. At most some messages a second go out, whatever the pace.
class BootNotifier {
 public:
  // How much time one step of progress buys. Longer than any one block takes to make.
  static constexpr absl::Duration kExtension = absl::Seconds(30);
  static constexpr absl::Duration kInterval = absl::Milliseconds(200);

  explicit BootNotifier(absl::Duration cap) : BootNotifier(cap, SystemBootClock()) {}
  // `clock` must outlive it.
  BootNotifier(absl::Duration cap, const Clock& clock) : cap_(cap), clock_(clock) {}
  void Progress(std::string_view what, uint64_t done, uint64_t total);

 private:
  static const Clock& SystemBootClock();

  const absl::Duration cap_;
  const Clock& clock_;
  uint64_t last_done_ = 0;
  std::optional<MonoTime> started_;
  std::optional<MonoTime> last_sent_;
};
void NotifyReady(std::string_view status);
// Followed by NotifyReady when the reload is done.
void NotifyReloading();
void NotifyStopping(std::string_view status);
void NotifyWatchdog();
// How often the manager wants WATCHDOG=1; none: not at all. Send it at half this period.
std::optional<absl::Duration> WatchdogPeriod();

// Sockets passed by the manager, by FileDescriptorName; close-on-exec set. Of several with one name the first is kept
// and the others closed. A second call finds none, and children inherit none.
std::map<std::string, ub::UniqueFd> PassedSockets();

}  // namespace ubd

#endif  // UBD_SERVICE_NOTIFY_H_
