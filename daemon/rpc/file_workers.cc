#include "daemon/rpc/file_workers.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/clock.h"

namespace ubd {

FileWorkers::FileWorkers() : state_(std::make_shared<State>()) {
  {
    ub::MutexLock lock(&state_->mu);
    state_->alive = kThreads;
  }
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([state = state_, i] { Work(state, i); });
  }
}

bool FileWorkers::Run(Uid uid, std::function<void()> job) {
  State& state = *state_;
  ub::MutexLock lock(&state.mu);
  auto it = state.jobs.find(uid);
  const size_t own = it == state.jobs.end() ? 0 : it->second.size();
  if (state.stopping || own >= kMostPerUid || state.waiting >= kMost) return false;
  state.jobs[uid].push_back(std::move(job));
  ++state.waiting;
  if (own == 0 && !state.busy.contains(uid)) state.turns.push_back(uid);
  state.changed.SignalAll();
  return true;
}

void FileWorkers::WorkOne(State& state, Uid uid) {
  auto it = state.jobs.find(uid);
  std::function<void()> job = std::move(it->second.front());
  it->second.pop_front();
  if (it->second.empty()) state.jobs.erase(it);
  --state.waiting;
  state.busy.insert(uid);
  state.mu.Unlock();
  job();
  job = nullptr;  // what it holds may be freed by nobody else
  state.mu.Lock();
  state.busy.erase(uid);
  if (state.jobs.contains(uid)) state.turns.push_back(uid);
}

void FileWorkers::Work(const std::shared_ptr<State>& shared, int number) {
  pthread_setname_np(pthread_self(), absl::StrCat("ubd-files-", number).c_str());
  State& state = *shared;
  ub::MutexLock lock(&state.mu);
  while (!state.stopping) {
    if (state.turns.empty()) {
      state.changed.Wait(&state.mu);
      continue;
    }
    const Uid uid = state.turns.front();
    state.turns.pop_front();
    WorkOne(state, uid);
  }
  --state.alive;
  state.changed.SignalAll();
}

bool FileWorkers::Stop(absl::Duration grace) {
  State& state = *state_;
  const SystemClock clock;
  const MonoTime end = clock.Now() + grace;
  std::map<Uid, std::deque<std::function<void()>>> dropped;
  bool stuck = false;
  {
    ub::MutexLock lock(&state.mu);
    state.stopping = true;
    dropped.swap(state.jobs);
    state.turns.clear();
    state.waiting = 0;
    state.changed.SignalAll();
    for (MonoTime now = clock.Now(); state.alive > 0 && now < end; now = clock.Now())
      state.changed.WaitWithTimeout(&state.mu, end - now);
    // Idle ones end at once, but perhaps not yet.
    stuck = !state.busy.empty();
  }
  for (std::thread& thread : threads_) stuck ? thread.detach() : thread.join();
  threads_.clear();
  return !stuck;
}

}  // namespace ubd
