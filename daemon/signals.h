// Signals as file descriptors: nothing of the daemon ever runs in a signal handler. BlockSignals must come first in
// main, before any thread, so that all threads inherit the mask.
#ifndef UBD_SIGNALS_H_
#define UBD_SIGNALS_H_

#include <csignal>
#include <functional>
#include <initializer_list>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

// TERM, INT and HUP are blocked, to be read from a signalfd; PIPE (a client that hung up) and IO (a lease break on a
// memfd) are ignored.
void BlockSignals();

// A descriptor that becomes readable when one of `signals` has come; non-blocking.
absl::StatusOr<ub::UniqueFd> SignalFd(std::initializer_list<int> signals);
// The next signal that has come; 0: none.
int ReadSignal(int fd);

// While it lives, TERM and INT end the process at once: for the start, when there is nothing yet that would have to be
// closed in order. `last_words` runs first, on a thread of its own. A signal that comes later stays pending for the
// next SignalFd.
class ExitOnSignal {
 public:
  explicit ExitOnSignal(std::function<void(int signal)> last_words);
  ~ExitOnSignal();
  ExitOnSignal(const ExitOnSignal&) = delete;
  ExitOnSignal& operator=(const ExitOnSignal&) = delete;

 private:
  ub::UniqueFd signals_;
  ub::UniqueFd stop_;
  std::thread thread_;
};

}  // namespace ubd

#endif  // UBD_SIGNALS_H_
