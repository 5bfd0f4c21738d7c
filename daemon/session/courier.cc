#include "daemon/session/courier.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"

namespace ubd {
namespace {

constexpr uint32_t kPeerEvents = EPOLLIN | EPOLLRDHUP;
constexpr uint32_t kReadingEvents = EPOLLOUT | EPOLLET;
constexpr absl::Duration kFirstBackOff = absl::Milliseconds(5);
constexpr absl::Duration kLongestBackOff = absl::Milliseconds(500);
constexpr size_t kLookForEndedAt = 64;

absl::Status SessionEnded() {
  return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded, "the session has ended");
}

}  // namespace

Courier::Courier(SessionId session, Uid uid, ub::UniqueFd lifeline, std::shared_ptr<CourierContext> context)
    : session_(session),
      context_(std::move(context)),
      lifeline_(std::move(lifeline)),
      peer_events_(kPeerEvents),
      look_for_ended_at_(kLookForEndedAt) {
  ub::MutexLock lock(&mu_);
  context_->credits.Open(session_, uid, lifeline_.get());
}

Courier::~Courier() { Finish(); }

absl::Status Courier::Start(std::function<void(uint32_t)> on_peer) {
  on_peer_ = std::move(on_peer);
  ub::MutexLock lock(&mu_);
  std::weak_ptr<Courier> weak = weak_from_this();
  absl::StatusOr<EventLoop::WatchId> watch =
      context_->loop->Watch(lifeline_.get(), kPeerEvents, [weak](uint32_t events) {
        if (auto self = weak.lock()) self->OnEvents(events);
      });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

bool Courier::UnderWay(const DeliveryPtr& delivery) const {
  return pumping_ && !queue_.empty() && queue_.front() == delivery;
}

// A retry has the same grant delivered anew; an older delivery that has not begun would only cost fds twice. It would
// also let a client that retries and does not read fill the queue.
Courier::DeliveryPtr Courier::TakeSuperseded(LeaseId lease) {
  auto it = newest_.find(lease);
  if (it == newest_.end() || it->second->sent > 0 || UnderWay(it->second)) return nullptr;
  DeliveryPtr older = std::move(it->second);
  newest_.erase(it);
  queue_.erase(std::find(queue_.begin(), queue_.end(), older));
  return older;
}

void Courier::Deliver(const Grant& grant, LeasePin pin, std::function<void(absl::Status)> first) {
  auto delivery = std::make_shared<Delivery>(grant, std::move(pin), std::move(first));
  DeliveryPtr superseded;
  LeasePin unpinned;
  bool closed, alone = false, look = false;
  {
    ub::MutexLock lock(&mu_);
    closed = closed_;
    if (!closed) {
      delivery->number = ++deliveries_;
      superseded = TakeSuperseded(grant.lease);
      alone = queue_.empty();
      if (!alone) {
        unpinned = std::move(delivery->pin);
        delivery->pinned = false;
      }
      queue_.push_back(delivery);
      newest_[grant.lease] = delivery;
      look = queue_.size() >= look_for_ended_at_;
    }
  }
  if (closed) {
    Drop(*delivery, SessionEnded());
    return;
  }
  if (superseded)
    Drop(*superseded, ub::MakeError(absl::StatusCode::kAborted, ub::Reason::kSuperseded, "a retry took over"));
  if (look) DropEnded();
  if (alone) Pump();
}

// Deliveries whose leases have ended wait for nothing. Looked for each time the queue has doubled, so that requests
// that are given up again and again by a client that does not read cannot pile up: what is left is bounded by the
// Broker's limits.
void Courier::DropEnded() {
  std::vector<DeliveryPtr> waiting, ended;
  {
    ub::MutexLock lock(&mu_);
    waiting.assign(queue_.begin(), queue_.end());
  }
  for (DeliveryPtr& delivery : waiting) {
    bool live = context_->broker.Pin(session_, delivery->grant.lease, delivery->grant.access).ok();
    if (!live) ended.push_back(std::move(delivery));
  }
  std::sort(ended.begin(), ended.end());
  std::vector<DeliveryPtr> dropped;
  {
    ub::MutexLock lock(&mu_);
    std::deque<DeliveryPtr> kept;
    for (const DeliveryPtr& delivery : queue_) {
      const bool drop = !UnderWay(delivery) && std::binary_search(ended.begin(), ended.end(), delivery);
      if (drop) Forget(delivery);
      drop ? dropped.push_back(delivery) : kept.push_back(delivery);
    }
    queue_.swap(kept);
    look_for_ended_at_ = std::max(kLookForEndedAt, 2 * queue_.size());
  }
  for (const DeliveryPtr& delivery : dropped) Drop(*delivery, LeaseEnded());
}

void Courier::Forget(const DeliveryPtr& delivery) {
  auto it = newest_.find(delivery->grant.lease);
  if (it != newest_.end() && it->second == delivery) newest_.erase(it);
}

void Courier::Pump() {
  DeliveryPtr delivery;
  {
    ub::MutexLock lock(&mu_);
    if (pumping_) again_ = true;
    if (closed_ || pumping_ || queue_.empty()) return;
    pumping_ = true;
    again_ = false;
    throttled_ = false;
    delivery = queue_.front();
  }
  Outcome outcome = SendBatch(*delivery);
  if (outcome != Outcome::kSent) {
    delivery->pin = LeasePin();
    delivery->pinned = false;
  }
  AfterBatch(delivery, outcome);
}

void Courier::AfterBatch(const DeliveryPtr& delivery, Outcome outcome) {
  bool closed, more, again;
  {
    ub::MutexLock lock(&mu_);
    pumping_ = false;
    again = again_;
    closed = closed_;
    if (!closed && outcome == Outcome::kDone) {
      queue_.pop_front();
      Forget(delivery);
    }
    more = !queue_.empty();
    throttled_ = !closed && outcome != Outcome::kDone && outcome != Outcome::kSent;
  }
  if (closed) {
    // Close left this one to its sender. What the sender had reserved may have been the last thing in flight.
    if (outcome != Outcome::kDone) Drop(*delivery, SessionEnded());
    PostCheckTaken();
  } else if (outcome != Outcome::kDone && outcome != Outcome::kSent) {
    Throttle(outcome);
    // An event came while this batch was tried: it may have made the room that was missing.
    if (again) PumpLater(shared_from_this());
  } else if (more) {
    PumpLater(shared_from_this());
  }
}

// Weakly held: what is posted to a loop that has stopped must not keep the loop alive.
void Courier::PumpLater(const std::shared_ptr<Courier>& courier) {
  if (!courier) return;
  std::weak_ptr<Courier> weak = courier;
  context_->loop->Post([weak] {
    if (auto self = weak.lock()) self->Pump();
  });
}

void Courier::Throttle(Outcome why) {
  if (why == Outcome::kOwnWait) return WatchReading();
  if (why == Outcome::kUidWait) {
    for (SessionId debtor : context_->credits.Debtors(session_)) {
      if (auto courier = context_->find(debtor)) courier->WatchReading();
    }
  }
  // The kernel has no event for "fewer fds in flight" or "a descriptor is free again".
  BackOff();
}

void Courier::BackOff() {
  ub::MutexLock lock(&mu_);
  if (closed_ || retry_ != 0) return;
  back_off_ = std::clamp(back_off_ * 2, kFirstBackOff, kLongestBackOff);
  std::weak_ptr<Courier> weak = weak_from_this();
  retry_ = context_->loop->RunAfter(back_off_, [weak] {
    auto self = weak.lock();
    if (!self) return;
    {
      ub::MutexLock relock(&self->mu_);
      self->retry_ = 0;
    }
    self->Pump();
  });
}

void Courier::WatchReading() {
  ub::MutexLock lock(&mu_);
  // Edge-triggered, and Rearm reports the state of now, so that a read between the look at the credits and this is not
  // missed. Not twice: it would report, and so wake the loop, each time.
  if (watch_ != 0 && !std::exchange(watches_reading_, true))
    context_->loop->Rearm(watch_, peer_events_ | kReadingEvents);
}

void Courier::OnEvents(uint32_t events) {
  bool closed;
  {
    ub::MutexLock lock(&mu_);
    closed = closed_;
  }
  if (closed) return CheckTaken();
  // It may have read and sent at the same time.
  if ((events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) on_peer_(events);
  if ((events & EPOLLOUT) != 0) OnWritable();
}

void Courier::OnWritable() {
  if (context_->credits.Refresh(session_)) {
    for (SessionId waiter : context_->credits.Waiters(session_)) PumpLater(context_->find(waiter));
  }
  Pump();
  ub::MutexLock lock(&mu_);
  if (closed_ || throttled_ || pumping_ || context_->credits.HasWaiters(session_)) return;
  watches_reading_ = false;
  context_->loop->Rearm(watch_, peer_events_);
}

bool Courier::Close(std::function<void()> on_taken) {
  std::deque<DeliveryPtr> dropped;
  EventLoop::TimerId retry;
  {
    ub::MutexLock lock(&mu_);
    closed_ = true;
    retry = std::exchange(retry_, 0);
    dropped.swap(queue_);
    newest_.clear();
    if (pumping_ && !dropped.empty()) dropped.pop_front();
    ::shutdown(lifeline_.get(), SHUT_RDWR);
  }
  context_->loop->Cancel(retry);
  for (const DeliveryPtr& delivery : dropped) Drop(*delivery, SessionEnded());
  if (context_->credits.InFlight(session_) == 0) {
    Finish();
    return false;
  }
  on_taken_ = std::move(on_taken);
  ub::MutexLock lock(&mu_);
  context_->loop->Rearm(watch_, kReadingEvents);
  return true;
}

void Courier::PostCheckTaken() {
  std::weak_ptr<Courier> weak = weak_from_this();
  context_->loop->Post([weak] {
    if (auto self = weak.lock()) self->CheckTaken();
  });
}

void Courier::CheckTaken() {
  if (on_taken_ == nullptr || context_->credits.InFlight(session_) > 0) return;
  std::exchange(on_taken_, nullptr)();
}

void Courier::Finish() {
  std::vector<SessionId> waiters = context_->credits.Waiters(session_);
  {
    ub::MutexLock lock(&mu_);
    closed_ = true;
    context_->loop->Unwatch(std::exchange(watch_, 0));
    context_->credits.Close(session_);
    lifeline_.reset();
  }
  for (SessionId waiter : waiters) PumpLater(context_->find(waiter));
}

}  // namespace ubd
