#include "daemon/session/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr EventLoop::WatchId kWakeId = 0;

absl::Status Control(int epoll, int op, int fd, uint32_t events, uint64_t id) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, op, fd, &event) != 0) return ub::ErrnoError(errno, "epoll_ctl");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  ub::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ub::ErrnoError(errno, "epoll_create1");
  ub::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ub::ErrnoError(errno, "eventfd");
  absl::Status added = Control(epoll.get(), EPOLL_CTL_ADD, wake.get(), EPOLLIN, kWakeId);
  if (!added.ok()) return added;
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

EventLoop::EventLoop(ub::UniqueFd epoll, ub::UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
EventLoop::~EventLoop() = default;

absl::StatusOr<EventLoop::WatchId> EventLoop::Watch(int fd, uint32_t events, Handler handler) {
  ub::MutexLock lock(&mu_);
  WatchId id = next_id_++;
  absl::Status added = Control(epoll_.get(), EPOLL_CTL_ADD, fd, events, id);
  if (!added.ok()) return added;
  watches_[id] = std::make_shared<Watched>(Watched{fd, std::move(handler)});
  return id;
}

void EventLoop::Rearm(WatchId watch, uint32_t events) {
  ub::MutexLock lock(&mu_);
  auto it = watches_.find(watch);
  if (it == watches_.end()) return;
  // Fails only for a descriptor that was closed too early, which the contract forbids.
  (void)Control(epoll_.get(), EPOLL_CTL_MOD, it->second->fd, events, watch);
}

void EventLoop::Unwatch(WatchId watch) {
  std::shared_ptr<Watched> gone;  // its handler may own a lot: destroyed after the lock is free
  ub::MutexLock lock(&mu_);
  auto it = watches_.find(watch);
  if (it == watches_.end()) return;
  (void)Control(epoll_.get(), EPOLL_CTL_DEL, it->second->fd, 0, watch);
  gone = std::move(it->second);
  watches_.erase(it);
}

EventLoop::TimerId EventLoop::RunAt(MonoTime when, std::function<void()> what) {
  TimerId id;
  bool earliest;
  {
    ub::MutexLock lock(&mu_);
    id = next_id_++;
    auto [it, inserted] = timers_.emplace(TimerKey(when.since_start(), id), std::move(what));
    timer_times_[id] = when.since_start();
    earliest = it == timers_.begin();
  }
  if (earliest) Wake();
  return id;
}

EventLoop::TimerId EventLoop::RunAfter(absl::Duration delay, std::function<void()> what) {
  return RunAt(Now() + delay, std::move(what));
}

void EventLoop::Cancel(TimerId timer) {
  std::function<void()> gone;
  ub::MutexLock lock(&mu_);
  auto time = timer_times_.find(timer);
  if (time == timer_times_.end()) return;
  auto it = timers_.find(TimerKey(time->second, timer));
  gone = std::move(it->second);
  timers_.erase(it);
  timer_times_.erase(time);
}

void EventLoop::Post(std::function<void()> what) {
  {
    ub::MutexLock lock(&mu_);
    posted_.push_back(std::move(what));
  }
  Wake();
}

void EventLoop::Interrupt() {
  interrupted_.store(true);
  uint64_t one = 1;
  // Cannot block; a full counter is readable already.
  (void)!::write(wake_.get(), &one, sizeof(one));
}

// The loop looks at posted work and timers before it sleeps, so on its own thread no wake-up is needed.
void EventLoop::Wake() {
  if (thread_.load() == std::this_thread::get_id()) return;
  uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
}

void EventLoop::Quit() {
  quit_.store(true);
  Wake();
}

void EventLoop::DrainWake() {
  uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof(count));
  if (interrupted_.exchange(false) && on_interrupt_) on_interrupt_();
}

void EventLoop::Dispatch(WatchId watch, uint32_t events) {
  if (watch == kWakeId) return DrainWake();
  std::shared_ptr<Watched> watched;
  {
    ub::MutexLock lock(&mu_);
    auto it = watches_.find(watch);
    if (it == watches_.end()) return;  // ended by an earlier callback of this round
    watched = it->second;
  }
  watched->handler(events);
}

void EventLoop::RunPosted() {
  std::vector<std::function<void()>> work;
  {
    ub::MutexLock lock(&mu_);
    work.swap(posted_);
  }
  for (auto& what : work) what();
}

void EventLoop::RunTimers() {
  // Only what is due now: a timer that sets itself again at once must not keep the loop from its sockets.
  absl::Duration now = Now().since_start();
  for (;;) {
    std::function<void()> what;
    {
      ub::MutexLock lock(&mu_);
      auto it = timers_.begin();
      if (it == timers_.end() || it->first.first > now) return;
      what = std::move(it->second);
      timer_times_.erase(it->first.second);
      timers_.erase(it);
    }
    what();
  }
}

int EventLoop::TimeoutMs() {
  ub::MutexLock lock(&mu_);
  if (!posted_.empty() || quit_.load()) return 0;
  if (timers_.empty() || timers_.begin()->first.first == absl::InfiniteDuration()) return -1;
  absl::Duration left = timers_.begin()->first.first - Now().since_start();
  if (left <= absl::ZeroDuration()) return 0;
  // Rounded up: waking a moment too early would only spin.
  int64_t ms = absl::ToInt64Milliseconds(left + absl::Milliseconds(1) - absl::Nanoseconds(1));
  return static_cast<int>(std::min<int64_t>(ms, std::numeric_limits<int>::max()));
}

void EventLoop::Run() {
  thread_.store(std::this_thread::get_id());
  std::array<epoll_event, 64> events;
  while (!quit_.load()) {
    RunPosted();
    RunTimers();
    int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), TimeoutMs());
    wakeups_.fetch_add(1, std::memory_order_relaxed);
    for (int i = 0; i < count; ++i) Dispatch(events[i].data.u64, events[i].events);
  }
  thread_.store(std::thread::id());
}

}  // namespace ubd
