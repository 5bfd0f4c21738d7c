// Counts the daemon's events by kind, on a thread of its own. Thread-safe.
#ifndef UB_UBCTL_EVENT_COUNTER_H_
#define UB_UBCTL_EVENT_COUNTER_H_

#include <array>
#include <memory>
#include <thread>

#include "client/ubctl/event_stream.h"
#include "client/ubctl/signals.h"
#include "proto/wire/mutex.h"

namespace ub::ctl {

struct EventCounts {
  std::array<uint64_t, v1::Event::Kind_ARRAYSIZE> by_kind = {};
  uint64_t missed = 0;
};

class EventCounter {
 public:
  explicit EventCounter(std::unique_ptr<EventStream> stream);
  ~EventCounter();
  EventCounter(const EventCounter&) = delete;
  EventCounter& operator=(const EventCounter&) = delete;

  // Since the start.
  EventCounts Counts() const ABSL_LOCKS_EXCLUDED(mu_);
  // Readable once the daemon ended the stream; then Ended says why.
  int fd() const { return ended_fd_.get(); }
  absl::Status Ended() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Read() ABSL_LOCKS_EXCLUDED(mu_);

  std::unique_ptr<EventStream> stream_;
  UniqueFd ended_fd_;
  mutable Mutex mu_;
  EventCounts counts_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_EVENT_COUNTER_H_
