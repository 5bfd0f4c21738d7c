#include "daemon/engine/slow_lane.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "daemon/engine/mono_ns.h"
#include "proto/wire/error.h"

namespace ubd {

absl::StatusOr<std::shared_ptr<SlowLane>> SlowLane::Create(std::unique_ptr<FileRing> ring) {
  ub::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  ub::UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !event.valid()) return ub::ErrnoError(errno, "epoll or eventfd for the slow devices' thread");
  epoll_event on_event = {.events = EPOLLIN | EPOLLET, .data = {.fd = event.get()}};
  epoll_event on_ring = {.events = EPOLLIN, .data = {.fd = ring->fd()}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &on_event) != 0 ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, ring->fd(), &on_ring) != 0) {
    return ub::ErrnoError(errno, "epoll_ctl for the slow devices' thread");
  }
  return std::shared_ptr<SlowLane>(new SlowLane(std::move(ring), std::move(epoll), std::move(event)));
}

SlowLane::SlowLane(std::unique_ptr<FileRing> ring, ub::UniqueFd epoll, ub::UniqueFd event)
    : ring_(std::move(ring)), epoll_(std::move(epoll)), event_(std::move(event)) {}

SlowLane::~SlowLane() {
  // With I/O in flight the ring cannot be taken down without waiting for the device.
  if (ring_->in_flight() != 0) static_cast<void>(ring_.release());
}

void SlowLane::Start(const ThreadPlan& plan) {
  {
    ub::MutexLock lock(&mu_);
    running_ = true;
  }
  std::thread([self = shared_from_this(), plan] {
    ApplyToThisThread(plan);
    self->Run();
    ub::MutexLock lock(&self->mu_);
    self->running_ = false;
    self->changed_.SignalAll();
  }).detach();
}

bool SlowLane::Quit(absl::Duration patience) {
  {
    ub::MutexLock lock(&mu_);
    quit_ = true;
  }
  Ring();
  const uint64_t until = MonoNs() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience));
  ub::MutexLock lock(&mu_);
  while (running_) {
    const uint64_t now = MonoNs();
    if (now >= until) return false;
    changed_.WaitWithTimeout(&mu_, absl::Nanoseconds(until - now));
  }
  return true;
}

void SlowLane::Ring() {
  const uint64_t one = 1;
  static_cast<void>(!write(event_.get(), &one, sizeof(one)));  // full only if it has not woken 2^64 times
}

void SlowLane::Hand(const PieceOrder& order) {
  {
    ub::MutexLock lock(&mu_);
    orders_.push_back(order);
    if (orders_.size() > 1) return;  // was rung for already
  }
  Ring();
}

void SlowLane::Cancel(ResultSink* sink, uint64_t tag) {
  {
    ub::MutexLock lock(&mu_);
    cancels_.emplace_back(sink, tag);
  }
  Ring();
}

void SlowLane::Run() {
  while (true) {
    {
      ub::MutexLock lock(&mu_);
      if (quit_) return;
    }
    TakeOrders();
    PostPending();
    ring_->Submit();
    if (!Reap()) Sleep();
  }
}

void SlowLane::TakeOrders() {
  std::vector<PieceOrder> orders;
  std::vector<Name> cancels;
  {
    ub::MutexLock lock(&mu_);
    orders.swap(orders_);
    cancels.swap(cancels_);
  }
  pending_.insert(pending_.end(), orders.begin(), orders.end());
  for (const Name& name : cancels) CancelOne(name);
}

void SlowLane::CancelOne(const Name& name) {
  auto waiting = std::find_if(pending_.begin(), pending_.end(), [&name](const PieceOrder& order) {
    return order.sink == name.first && order.piece.tag == name.second;
  });
  if (waiting != pending_.end()) {
    pending_.erase(waiting);
    const PieceResult result = {.tag = name.second, .result = -ECANCELED, .registered = true};
    name.first->Deliver({&result, 1});
    return;
  }
  for (size_t i = 0; i < posted_.size(); ++i) {
    if (posted_[i].sink == name.first && posted_[i].tag == name.second) ring_->Cancel(i + 1);
  }
}

void SlowLane::PostPending() {
  while (!pending_.empty() && ring_->Room() != 0) {
    PieceOrder order = pending_.front();
    pending_.pop_front();
    if (free_tags_.empty()) {
      posted_.emplace_back();
      free_tags_.push_back(posted_.size());
    }
    const uint64_t tag = free_tags_.back();
    free_tags_.pop_back();
    posted_[tag - 1] = {.sink = order.sink, .tag = order.piece.tag, .registered = false};
    order.piece.tag = tag;
    posted_[tag - 1].registered = ring_->Post(order.piece);
  }
}

bool SlowLane::Reap() {
  std::array<FileResult, 64> results;
  const size_t count = ring_->Reap(absl::MakeSpan(results));
  for (size_t i = 0; i < count; ++i) {
    Posted& posted = posted_[results[i].tag - 1];
    const PieceResult result = {.tag = posted.tag, .result = results[i].result, .registered = posted.registered};
    ResultSink* sink = posted.sink;
    posted = {};
    free_tags_.push_back(results[i].tag);
    sink->Deliver({&result, 1});
  }
  return count != 0;
}

void SlowLane::Sleep() {
  std::array<epoll_event, 2> events;
  epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
}

}  // namespace ubd
