#include "daemon/memory/closer.h"

#include <pthread.h>

#include <deque>
#include <thread>
#include <utility>

#include "proto/wire/mutex.h"

namespace ubd {

struct Closer::State {
  mutable ub::Mutex mu;
  std::deque<ub::UniqueFd> waiting ABSL_GUARDED_BY(mu);
  size_t pending ABSL_GUARDED_BY(mu) = 0;
  bool running ABSL_GUARDED_BY(mu) = false;

  // Until nothing waits; the next Close starts another thread.
  void Run() {
    for (;;) {
      ub::UniqueFd fd;
      {
        ub::MutexLock lock(&mu);
        if (waiting.empty()) {
          running = false;
          return;
        }
        fd = std::move(waiting.front());
        waiting.pop_front();
      }
      fd.reset();
      ub::MutexLock lock(&mu);
      --pending;
    }
  }
};

Closer::Closer() : state_(std::make_shared<State>()) {}
Closer::~Closer() = default;

void Closer::Close(ub::UniqueFd fd) {
  {
    ub::MutexLock lock(&state_->mu);
    state_->waiting.push_back(std::move(fd));
    ++state_->pending;
    if (std::exchange(state_->running, true)) return;
  }
  std::thread thread([state = state_] { state->Run(); });
  ::pthread_setname_np(thread.native_handle(), "ubd-closer");
  thread.detach();
}

size_t Closer::pending() const {
  ub::MutexLock lock(&state_->mu);
  return state_->pending;
}

}  // namespace ubd
