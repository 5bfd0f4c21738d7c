// Event streams (Broker.Watch, Admin.WatchAll): first WATCHING, then what the filter lets through, until the caller
// ends the stream or `over` says that there is nothing more to come. A slow reader loses its oldest events and is told
// how many.
#ifndef UBD_RPC_WATCH_H_
#define UBD_RPC_WATCH_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/translate.h"
#include "daemon/telemetry/event_hub.h"
#include "ub/v1/types.pb.h"

namespace ubd {

// True for events about the daemon as a whole, which every watcher gets.
bool ConcernsAll(EventKind kind);

template <class Req>
class WatchSource : public StreamCall<Req, ub::v1::Event>::Source {
 public:
  // `over` is asked whenever there is no event left.
  using Over = std::function<std::optional<absl::Status>()>;
  WatchSource(std::unique_ptr<Watcher> watcher, CallLimiter::Place place, Over over)
      : place_(std::move(place)), watcher_(std::move(watcher)), over_(std::move(over)) {}

  std::optional<ub::v1::Event> Next() override {
    if (!std::exchange(greeted_, true)) {
      ub::v1::Event watching;
      watching.set_kind(ub::v1::Event::WATCHING);
      watching.set_unix_time_ns(absl::ToUnixNanos(absl::Now()));
      return watching;
    }
    // Asked before the queue: what came before the end is in the queue by then.
    std::optional<absl::Status> over = over_ ? over_() : std::nullopt;
    std::optional<WatchedEvent> event = watcher_->Next();
    if (event) return ToProto(*event);
    end_ = std::move(over);
    return std::nullopt;
  }
  std::optional<absl::Status> End() override { return end_; }

 private:
  CallLimiter::Place place_;
  std::unique_ptr<Watcher> watcher_;
  Over over_;
  std::optional<absl::Status> end_;
  bool greeted_ = false;
};

// Starts `call` on events that pass `filter`. At most `limit` streams for one `key`:
// RESOURCE_EXHAUSTED/TOO_MANY_WAITERS beyond.
template <class Req>
void StartWatch(const std::shared_ptr<StreamCall<Req, ub::v1::Event>>& call, EventFilter filter,
                std::pair<std::string, uint32_t> key_and_limit, typename WatchSource<Req>::Over over) {
  auto [key, limit] = std::move(key_and_limit);
  CallLimiter::Place place = call->context().limits.Take(key, limit);
  if (place == nullptr) return call->EndStream(TooManyCalls(limit));
  std::weak_ptr<StreamCall<Req, ub::v1::Event>> weak = call;
  std::unique_ptr<Watcher> watcher = call->context().deps.events.Watch(std::move(filter), [weak] {
    if (auto strong = weak.lock()) strong->Poke();
  });
  call->Start(std::make_unique<WatchSource<Req>>(std::move(watcher), std::move(place), std::move(over)));
}

}  // namespace ubd

#endif  // UBD_RPC_WATCH_H_
