// The daemon's event loop: epoll, timers and posted work on one thread. It sleeps without a timeout while no timer is
// set, so an idle daemon wakes for nothing.
//
// An event goes only to the watch it was made for: watches carry a number that is never used again, so an event that
// was collected for a closed descriptor cannot reach whatever got its number later.
//
// All functions may be called from any thread, but Unwatch and Cancel only promise that the callback will not start any
// more when they are called on the loop's thread. Callbacks run on the loop's thread, without locks held; they may add,
// remove, post and quit.
#ifndef UBD_SESSION_EVENT_LOOP_H_
#define UBD_SESSION_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/clock.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class EventLoop {
 public:
  // 0 names none.
  using WatchId = uint64_t;
  using TimerId = uint64_t;
  // Gets the epoll events.
  using Handler = std::function<void(uint32_t)>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();
  ~EventLoop();

  // `fd` is not owned: Unwatch before it is closed, also where a copy of it lives on.
  absl::StatusOr<WatchId> Watch(int fd, uint32_t events, Handler handler);
  // Other events; the state of now is reported even with EPOLLET. No-op for a watch that is gone.
  void Rearm(WatchId watch, uint32_t events);
  void Unwatch(WatchId watch);

  TimerId RunAt(MonoTime when, std::function<void()> what);
  TimerId RunAfter(absl::Duration delay, std::function<void()> what);
  void Cancel(TimerId timer);
  void Post(std::function<void()> what);

  // Signal-safe: has the loop call the interrupt handler soon. Set the handler before Run.
  void Interrupt();
  void OnInterrupt(std::function<void()> handler) { on_interrupt_ = std::move(handler); }

  // Runs on the calling thread until Quit.
  void Run();
  void Quit();

  MonoTime Now() const { return clock_.Now(); }
  // Returns from epoll_wait so far.
  uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }

 private:
  struct Watched {
    int fd;
    Handler handler;
  };
  using TimerKey = std::pair<absl::Duration, TimerId>;

  EventLoop(ub::UniqueFd epoll, ub::UniqueFd wake);
  void Wake();
  void Dispatch(WatchId watch, uint32_t events);
  void DrainWake();
  void RunPosted();
  void RunTimers();
  int TimeoutMs();

  const SystemClock clock_;
  const ub::UniqueFd epoll_;
  const ub::UniqueFd wake_;
  std::function<void()> on_interrupt_;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> quit_{false};
  std::atomic<uint64_t> wakeups_{0};
  std::atomic<std::thread::id> thread_{};

  ub::Mutex mu_;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<WatchId, std::shared_ptr<Watched>> watches_ ABSL_GUARDED_BY(mu_);
  std::map<TimerKey, std::function<void()>> timers_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<TimerId, absl::Duration> timer_times_ ABSL_GUARDED_BY(mu_);
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_SESSION_EVENT_LOOP_H_
