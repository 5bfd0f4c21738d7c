#include "client/ubctl/event_counter.h"

namespace ub::ctl {

EventCounter::EventCounter(std::unique_ptr<EventStream> stream)
    : stream_(std::move(stream)), ended_fd_(MakeEventFd()), thread_([this] { Read(); }) {}

EventCounter::~EventCounter() {
  stream_->Stop();
  thread_.join();
}

void EventCounter::Read() {
  while (true) {
    auto event = stream_->Next();
    MutexLock lock(&mu_);
    if (!event.ok()) {
      ended_ = event.status();
      Ring(ended_fd_.get());
      return;
    }
    if (!event->has_value()) return;
    // A newer daemon may know more kinds than this ubctl.
    auto kind = static_cast<size_t>((*event)->kind());
    if (kind < counts_.by_kind.size()) ++counts_.by_kind[kind];
    counts_.missed += (*event)->missed();
  }
}

EventCounts EventCounter::Counts() const {
  MutexLock lock(&mu_);
  return counts_;
}

absl::Status EventCounter::Ended() const {
  MutexLock lock(&mu_);
  return ended_;
}

}  // namespace ub::ctl
