// One watcher's queue: filled by the hub, emptied by its reader, shared by both. Thread-safe.
#ifndef UBD_TELEMETRY_WATCH_QUEUE_H_
#define UBD_TELEMETRY_WATCH_QUEUE_H_

#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "daemon/telemetry/event_hub.h"
#include "proto/wire/mutex.h"

namespace ubd {

class WatchQueue {
 public:
  WatchQueue(EventFilter filter, std::function<void()> wake) : filter_(std::move(filter)), wake_(std::move(wake)) {}

  // The hub's side. True: the reader waits, call Wake (with no lock held).
  bool Push(const WatchedEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  bool closed() ABSL_LOCKS_EXCLUDED(mu_);

  // The reader's side. After Close neither filter nor wake are called.
  std::optional<WatchedEvent> Next() ABSL_LOCKS_EXCLUDED(mu_);
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  ub::Mutex mu_;
  ub::CondVar woken_;
  const EventFilter filter_;
  const std::function<void()> wake_;
  std::deque<WatchedEvent> events_ ABSL_GUARDED_BY(mu_);
  uint64_t missed_ ABSL_GUARDED_BY(mu_) = 0;  // dropped in front of events_
  bool waiting_ ABSL_GUARDED_BY(mu_) = true;  // the reader found nothing and wants a wake
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<std::thread::id> waking_ ABSL_GUARDED_BY(mu_);  // the thread inside wake_
};

}  // namespace ubd

#endif  // UBD_TELEMETRY_WATCH_QUEUE_H_
