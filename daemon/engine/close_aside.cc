#include "daemon/engine/close_aside.h"

#include <pthread.h>
#include <unistd.h>

#include <deque>

#include "proto/wire/mutex.h"

namespace ubd {
namespace {

struct Closers {
  ub::Mutex mu;
  std::deque<int> waiting ABSL_GUARDED_BY(mu);
  size_t threads ABSL_GUARDED_BY(mu) = 0;
  size_t under_way ABSL_GUARDED_BY(mu) = 0;
};

// Never destroyed: a stuck thread may outlive everything else.
Closers& All() {
  static Closers& closers = *new Closers;
  return closers;
}

void* CloseWaiting(void*) {
  Closers& all = All();
  all.mu.Lock();
  while (!all.waiting.empty()) {
    int fd = all.waiting.front();
    all.waiting.pop_front();
    all.mu.Unlock();
    ::close(fd);
    all.mu.Lock();
    --all.under_way;
  }
  --all.threads;
  all.mu.Unlock();
  return nullptr;
}

}  // namespace

void CloseAside(ub::UniqueFd fd) {
  if (!fd.valid()) return;
  Closers& all = All();
  ub::MutexLock lock(&all.mu);
  all.waiting.push_back(fd.release());
  ++all.under_way;
  if (all.threads == kMostClosers) return;
  pthread_t thread;
  // Without a thread it waits for the next call's.
  if (::pthread_create(&thread, nullptr, CloseWaiting, nullptr) != 0) return;
  ::pthread_detach(thread);
  ++all.threads;
}

size_t ClosesUnderWay() {
  Closers& all = All();
  ub::MutexLock lock(&all.mu);
  return all.under_way;
}

}  // namespace ubd
