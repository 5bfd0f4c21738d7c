#include "daemon/telemetry/watch_queue.h"

#include <utility>

namespace ubd {

bool WatchQueue::Push(const WatchedEvent& event) {
  ub::MutexLock lock(&mu_);
  if (closed_ || !filter_(event.event)) return false;
  if (events_.size() == EventHub::kWatcherCapacity) {
    events_.pop_front();
    ++missed_;
  }
  events_.push_back(event);
  return std::exchange(waiting_, false);
}

void WatchQueue::Wake() {
  {
    ub::MutexLock lock(&mu_);
    if (closed_) return;
    waking_ = std::this_thread::get_id();
  }
  wake_();
  ub::MutexLock lock(&mu_);
  waking_.reset();
  woken_.SignalAll();
}

bool WatchQueue::closed() {
  ub::MutexLock lock(&mu_);
  return closed_;
}

std::optional<WatchedEvent> WatchQueue::Next() {
  ub::MutexLock lock(&mu_);
  if (events_.empty()) {
    waiting_ = true;
    return std::nullopt;
  }
  WatchedEvent event = std::move(events_.front());
  events_.pop_front();
  event.missed = std::exchange(missed_, 0);
  return event;
}

void WatchQueue::Close() {
  ub::MutexLock lock(&mu_);
  closed_ = true;
  events_.clear();
  // From inside wake_ (the last reference to its reader was dropped there) waiting would never end.
  while (waking_ && *waking_ != std::this_thread::get_id()) woken_.Wait(&mu_);
}

}  // namespace ubd
