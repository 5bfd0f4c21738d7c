#include "daemon/quiet_engine.h"

#include <grpc/event_engine/event_engine.h>
#include <pthread.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/core/clock.h"
#include "proto/wire/mutex.h"

namespace ubd {
namespace {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;

using Task = absl::AnyInvocable<void()>;

// The tasks by time, and the thread that runs them. Shared by the engine and its thread, for the engine may be
// destroyed by a task.
class TaskQueue {
 public:
  // Tasks of the same moment run in the order in which they came.
  using Key = std::pair<MonoTime, int64_t>;

  Key Add(absl::Duration delay, Task task) ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    Key key(clock_.Now() + delay, next_++);
    numbers_.emplace(key.second, key.first);
    auto added = tasks_.emplace(key, std::move(task)).first;
    if (added == tasks_.begin()) changed_.Signal();
    return key;
  }

  // False: it has run, or runs now.
  bool Remove(int64_t number) ABSL_LOCKS_EXCLUDED(mu_) {
    Task removed;  // destroyed without the lock
    ub::MutexLock lock(&mu_);
    auto found = numbers_.find(number);
    if (found == numbers_.end()) return false;
    auto task = tasks_.find(Key(found->second, number));
    removed = std::move(task->second);
    tasks_.erase(task);
    numbers_.erase(found);
    return true;
  }

  void RunUntilStopped() ABSL_LOCKS_EXCLUDED(mu_) {
    while (std::optional<Task> task = WaitForNext()) (*task)();
  }

  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    stopped_ = true;
    changed_.Signal();
  }

 private:
  std::optional<Task> WaitForNext() ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    while (!stopped_) {
      if (tasks_.empty()) {
        changed_.Wait(&mu_);
        continue;
      }
      auto next = tasks_.begin();
      absl::Duration left = next->first.first - clock_.Now();
      if (left > absl::ZeroDuration()) {
        changed_.WaitWithTimeout(&mu_, left);
        continue;
      }
      Task task = std::move(next->second);
      numbers_.erase(next->first.second);
      tasks_.erase(next);
      return task;
    }
    return std::nullopt;
  }

  SystemClock clock_;
  ub::Mutex mu_;
  ub::CondVar changed_;
  std::map<Key, Task> tasks_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, MonoTime> numbers_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

class QuietEngine : public EventEngine {
 public:
  QuietEngine() : queue_(std::make_shared<TaskQueue>()) {
    thread_ = std::thread([queue = queue_] {
      pthread_setname_np(pthread_self(), "ubd-engine");
      queue->RunUntilStopped();
    });
  }
  ~QuietEngine() override {
    queue_->Stop();
    // A task may have held the last reference; the thread then ends by itself.
    IsWorkerThread() ? thread_.detach() : thread_.join();
  }

  bool IsWorkerThread() override { return std::this_thread::get_id() == thread_.get_id(); }
  void Run(Closure* closure) override { RunAfter(Duration::zero(), closure); }
  void Run(Task task) override { RunAfter(Duration::zero(), std::move(task)); }
  TaskHandle RunAfter(Duration when, Closure* closure) override {
    return RunAfter(when, [closure] { closure->Run(); });
  }
  TaskHandle RunAfter(Duration when, Task task) override {
    return {{static_cast<intptr_t>(queue_->Add(absl::FromChrono(when), std::move(task)).second), 0}};
  }
  bool Cancel(TaskHandle handle) override { return queue_->Remove(handle.keys[0]); }

  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(Listener::AcceptCallback,
                                                           absl::AnyInvocable<void(absl::Status)>,
                                                           const EndpointConfig&,
                                                           std::unique_ptr<MemoryAllocatorFactory>) override {
    return absl::UnimplementedError("timers and tasks only");
  }
  ConnectionHandle Connect(OnConnectCallback on_connect, const ResolvedAddress&, const EndpointConfig&, MemoryAllocator,
                           Duration) override {
    Run([on_connect = std::move(on_connect)]() mutable {
      on_connect(absl::UnimplementedError("timers and tasks only"));
    });
    return {{0, 0}};
  }
  bool CancelConnect(ConnectionHandle) override { return false; }
  std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions&) override { return nullptr; }

 private:
  std::shared_ptr<TaskQueue> queue_;
  std::thread thread_;
};

}  // namespace

void InstallQuietEngine() {
  grpc_event_engine::experimental::SetEventEngineFactory([] { return std::make_unique<QuietEngine>(); });
}

}  // namespace ubd
