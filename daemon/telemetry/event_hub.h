// Fans the Broker's events out: to the audit log, to metrics, and to any number of watchers. OnEvent never blocks: each
// consumer has a bounded queue of its own; a watcher that is too slow loses its oldest events and is told how many
// (`missed`); the audit log says how many lines it lost. Thread-safe. A watcher may outlive the hub.
#ifndef UBD_TELEMETRY_EVENT_HUB_H_
#define UBD_TELEMETRY_EVENT_HUB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/core/event.h"

namespace ubd {

struct WatchedEvent {
  uint64_t seq = 0;
  int64_t unix_time_ns = 0;
  uint64_t missed = 0;  // events dropped before this one
  Event event;
};

// One reader's queue. Thread-safe.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // The next event; none: `wake` will be called (once) when there is one.
  virtual std::optional<WatchedEvent> Next() = 0;
};

// What a watcher gets to see. Called under the hub's lock: quick, and without a call of hub or watcher.
using EventFilter = std::function<bool(const Event&)>;

class EventHub : public Observer {
 public:
  static constexpr size_t kWatcherCapacity = 1024;
  static constexpr size_t kAuditCapacity = 65536;

  // A consumer called inline, in order; must be quick and must not block (metrics counters).
  virtual void AddSink(std::function<void(const WatchedEvent&)> sink) = 0;
  // `wake` is called from the hub's own thread with no lock held, at most once between two calls of Next that return
  // none (the first event of all wakes too). Destroying the watcher ends the watch; `wake` is not called after that:
  // the destructor waits for one that is under way, unless it runs inside it.
  virtual std::unique_ptr<Watcher> Watch(EventFilter filter, std::function<void()> wake) = 0;

  // Starts a thread that wakes watchers and writes one audit line per event; it sleeps while there are none. Destroying
  // the hub writes what is queued.
  static std::unique_ptr<EventHub> Create();
};

}  // namespace ubd

#endif  // UBD_TELEMETRY_EVENT_HUB_H_
