#include "daemon/telemetry/event_hub.h"

#include <pthread.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "daemon/telemetry/audit.h"
#include "daemon/telemetry/watch_queue.h"
#include "proto/wire/mutex.h"

namespace ubd {
namespace {

using QueuePtr = std::shared_ptr<WatchQueue>;

class QueueWatcher : public Watcher {
 public:
  explicit QueueWatcher(QueuePtr queue) : queue_(std::move(queue)) {}
  ~QueueWatcher() override { queue_->Close(); }
  std::optional<WatchedEvent> Next() override { return queue_->Next(); }

 private:
  QueuePtr queue_;
};

class Hub : public EventHub {
 public:
  Hub() : thread_([this] { Run(); }) {}
  ~Hub() override {
    {
      ub::MutexLock lock(&mu_);
      stopping_ = true;
      work_.Signal();
    }
    thread_.join();
  }

  void OnEvent(const Event& event) override ABSL_LOCKS_EXCLUDED(mu_) {
    WatchedEvent watched{0, absl::ToUnixNanos(absl::Now()), 0, event};
    ub::MutexLock lock(&mu_);
    watched.seq = ++seq_;
    for (const auto& sink : sinks_) sink(watched);
    for (const QueuePtr& queue : queues_) {
      if (queue->Push(watched)) to_wake_.push_back(queue);
    }
    audit_.Push(watched);
    work_.Signal();
  }

  void AddSink(std::function<void(const WatchedEvent&)> sink) override ABSL_LOCKS_EXCLUDED(mu_) {
    ub::MutexLock lock(&mu_);
    sinks_.push_back(std::move(sink));
  }

  std::unique_ptr<Watcher> Watch(EventFilter filter, std::function<void()> wake) override ABSL_LOCKS_EXCLUDED(mu_) {
    auto queue = std::make_shared<WatchQueue>(std::move(filter), std::move(wake));
    std::vector<QueuePtr> closed;  // destroyed after the lock: their functions are the callers'
    ub::MutexLock lock(&mu_);
    DropClosed(&closed);
    queues_.push_back(queue);
    return std::make_unique<QueueWatcher>(std::move(queue));
  }

 private:
  // Closed queues are dropped here and not by their watchers, so that a watcher may outlive the hub.
  void DropClosed(std::vector<QueuePtr>* closed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto end =
        std::stable_partition(queues_.begin(), queues_.end(), [](const QueuePtr& queue) { return !queue->closed(); });
    closed->assign(std::make_move_iterator(end), std::make_move_iterator(queues_.end()));
    queues_.erase(end, queues_.end());
  }

  // Watchers come first: a slow log delays nobody by more than one line.
  void Run() ABSL_LOCKS_EXCLUDED(mu_) {
    pthread_setname_np(pthread_self(), "ubd-events");
    while (true) {
      std::vector<QueuePtr> to_wake, closed;
      AuditEntry entry;
      {
        ub::MutexLock lock(&mu_);
        while (to_wake_.empty() && audit_.empty() && !stopping_) work_.Wait(&mu_);
        if (to_wake_.empty() && audit_.empty()) return;
        to_wake = std::exchange(to_wake_, {});
        DropClosed(&closed);
        if (!audit_.empty()) entry = audit_.Pop();
      }
      for (const QueuePtr& queue : to_wake) queue->Wake();
      WriteAudit(entry);
    }
  }

  ub::Mutex mu_;
  ub::CondVar work_;
  uint64_t seq_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::function<void(const WatchedEvent&)>> sinks_ ABSL_GUARDED_BY(mu_);
  std::vector<QueuePtr> queues_ ABSL_GUARDED_BY(mu_);
  std::vector<QueuePtr> to_wake_ ABSL_GUARDED_BY(mu_);
  AuditQueue audit_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace

std::unique_ptr<EventHub> EventHub::Create() { return std::make_unique<Hub>(); }

}  // namespace ubd
