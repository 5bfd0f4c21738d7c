// Calls to the daemon that whoever causes them must not wait for: what a completion gives back (leases, files), and
// queues to close. One thread, started by the first of them; in order. Thread-safe.
#ifndef UB_SRC_LATER_CALLS_H_
#define UB_SRC_LATER_CALLS_H_

#include <atomic>
#include <deque>
#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "proto/wire/mutex.h"

namespace ub {

class LaterCalls {
 public:
  LaterCalls() = default;
  // Runs what is left.
  ~LaterCalls();
  LaterCalls(const LaterCalls&) = delete;
  LaterCalls& operator=(const LaterCalls&) = delete;

  void Add(std::function<void()> call);
  // Until everything that was added has run, at most `limit`. Free while there is nothing.
  void AwaitIdle(absl::Duration limit);

 private:
  void Run();

  std::atomic<int> open_{0};  // added and not run
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> calls_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ub

#endif  // UB_SRC_LATER_CALLS_H_
