// INT, TERM and HUP as events instead of interruptions: a command that holds something ends in order. Make one before
// any thread starts, so that every thread inherits the blocked mask. A HUP that the caller had ignored (nohup) stays
// ignored.
#ifndef UB_UBCTL_SIGNALS_H_
#define UB_UBCTL_SIGNALS_H_

#include <functional>
#include <thread>

#include "proto/wire/unique_fd.h"

namespace ub::ctl {

class StopSignals {
 public:
  StopSignals();
  // Readable once one of them has come. Never read it: it stays readable.
  int fd() const { return fd_.get(); }
  // Whether one has come.
  bool Pending() const;

 private:
  UniqueFd fd_;
};

// Calls `on_stop` once, on a thread of its own, when a signal comes; the destructor ends the wait.
class StopWatcher {
 public:
  StopWatcher(const StopSignals& signals, std::function<void()> on_stop);
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

 private:
  UniqueFd done_;
  std::thread thread_;
};

// An eventfd that only this process has.
UniqueFd MakeEventFd();
void Ring(int event_fd);

}  // namespace ub::ctl

#endif  // UB_UBCTL_SIGNALS_H_
