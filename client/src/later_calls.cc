#include "client/src/later_calls.h"

#include <utility>

#include "client/src/mono_time.h"
#include "client/src/quiet_thread.h"

namespace ub {

LaterCalls::~LaterCalls() {
  std::thread thread;
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void LaterCalls::Add(std::function<void()> call) {
  open_.fetch_add(1);
  MutexLock lock(&mu_);
  calls_.push_back(std::move(call));
  if (!thread_.joinable()) thread_ = StartQuietly("ub-later", [this] { Run(); });
  changed_.SignalAll();
}

void LaterCalls::AwaitIdle(absl::Duration limit) {
  if (open_.load(std::memory_order_acquire) == 0) return;
  Deadline deadline = Deadline::After(limit);
  MutexLock lock(&mu_);
  while (open_.load() != 0 && !deadline.passed()) changed_.WaitWithTimeout(&mu_, deadline.left());
}

void LaterCalls::Run() {
  mu_.Lock();
  while (true) {
    if (calls_.empty()) {
      if (stopping_) break;
      changed_.Wait(&mu_);
      continue;
    }
    std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    mu_.Unlock();
    call();
    call = nullptr;
    mu_.Lock();
    open_.fetch_sub(1);
    changed_.SignalAll();
  }
  mu_.Unlock();
}

}  // namespace ub
