#include "daemon/engine/lane.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"

namespace ubd {

using ub::wire::QueueState;
using ub::wire::TransferError;

absl::StatusOr<std::shared_ptr<Lane>> Lane::Create(EngineShared& shared, std::unique_ptr<FileRing> ring,
                                                   PieceWorker* slow, PieceWorker* copy) {
  ub::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  ub::UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !event.valid()) return ub::ErrnoError(errno, "epoll or eventfd for an engine thread");
  epoll_event on_event = {.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &on_event) != 0) {
    return ub::ErrnoError(errno, "epoll_ctl for an engine thread");
  }
  if (ring != nullptr) {
    epoll_event on_ring = {.events = EPOLLIN, .data = {.ptr = nullptr}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, ring->fd(), &on_ring) != 0) {
      return ub::ErrnoError(errno, "epoll_ctl for an engine thread's io_uring");
    }
  }
  const Workers workers = {.ring = ring.get(), .slow = slow, .copy = copy, .sink = nullptr};
  return std::shared_ptr<Lane>(new Lane(shared, std::move(ring), workers, std::move(epoll), std::move(event)));
}

Lane::Lane(EngineShared& shared, std::unique_ptr<FileRing> ring, const Workers& workers, ub::UniqueFd epoll,
           ub::UniqueFd event)
    : shared_(shared),
      ring_(std::move(ring)),
      epoll_(std::move(epoll)),
      inbox_(std::move(event)),
      dispatcher_(shared, {workers.ring, workers.slow, workers.copy, this}) {}

Lane::~Lane() {
  // With I/O in flight the ring cannot be taken down without waiting for the device.
  if (ring_ != nullptr && ring_->in_flight() != 0) static_cast<void>(ring_.release());
}

void Lane::Start(const ThreadPlan& plan) {
  {
    ub::MutexLock lock(&mu_);
    ended_ = false;
  }
  std::thread([self = shared_from_this(), plan] {
    ApplyToThisThread(plan);
    self->Run();
    ub::MutexLock lock(&self->mu_);
    self->ended_ = true;
    self->changed_.SignalAll();
  }).detach();
}

void Lane::Add(std::shared_ptr<ServedQueue> queue) {
  queue_count_.fetch_add(1, std::memory_order_relaxed);
  inbox_.PostCall([this, queue = std::move(queue)] { AddHere(queue); });
}

void Lane::Close(std::shared_ptr<ServedQueue> queue) {
  inbox_.PostCall([this, queue = std::move(queue)] { CloseHere(queue); });
}

void Lane::BeginStop() {
  inbox_.PostCall([this] { StopHere(); });
}

void Lane::Quit() {
  inbox_.PostCall([this] { QuitHere(); });
}

bool Lane::WaitFor(const bool& flag, uint64_t until_ns) {
  while (!flag) {
    const uint64_t now = MonoNs();
    if (now >= until_ns) return false;
    changed_.WaitWithTimeout(&mu_, absl::Nanoseconds(until_ns - now));
  }
  return true;
}

bool Lane::WaitIdle(uint64_t until_ns) {
  ub::MutexLock lock(&mu_);
  return WaitFor(idle_, until_ns);
}

bool Lane::WaitEnd(uint64_t until_ns) {
  ub::MutexLock lock(&mu_);
  return WaitFor(ended_, until_ns);
}

void Lane::Run() {
  while (true) {
    TakeInbox();
    if (quit_) return;
    const uint64_t now = MonoNs();
    bool busy = Poll(now);
    if (!dispatcher_.touched().empty()) Settle(now);  // what is answered at once does not wait for the devices
    busy |= dispatcher_.Round(now);
    if (!no_room_.empty()) busy |= LookForRoom(now);
    in_flight_.store(dispatcher_.in_flight(), std::memory_order_relaxed);
    if (!dispatcher_.touched().empty()) Settle(now);
    if (busy) continue;
    if (stopping_ && dispatcher_.in_flight() == 0) MarkIdle();
    Arm(now);
    if (polled_.empty() && !dispatcher_.has_ready() && dispatcher_.touched().empty()) {
      Sleep(now);
    } else {
      ub::SpinPause();
    }
  }
}

void Lane::TakeInbox() {
  if (!inbox_.Take(content_)) return;
  for (LaneInbox::Call& call : content_.calls) call();
  if (!content_.results.empty()) dispatcher_.TakeResults(content_.results, MonoNs());
  if (content_.nudged) Release(no_place_);
}

void Lane::AddHere(const std::shared_ptr<ServedQueue>& queue) {
  ServedQueue& added = *queue;
  epoll_event on_ring = {.events = EPOLLIN | EPOLLET, .data = {.ptr = &added}};
  owned_.emplace(&added, queue);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, added.memory->event_fd(), &on_ring) != 0) {
    LogError("cannot watch a queue: closed", {{"session", std::to_string(added.session->id.value())},
                                              {"queue", std::to_string(added.id)},
                                              {"errno", std::to_string(errno)}});
    dispatcher_.End(added, QueueState::kClosed, TransferError::kStopping);
    return;
  }
  added.poll_from_ns = MonoNs();
  List(added);
}

void Lane::CloseHere(const std::shared_ptr<ServedQueue>& queue) {
  if (!owned_.contains(queue.get())) return;
  queue->closing = true;
  dispatcher_.End(*queue, QueueState::kClosed, TransferError::kCancelled);
}

void Lane::StopHere() {
  stopping_ = true;
  for (auto& [queue, owner] : owned_) {
    if (queue->place == ServedQueue::Place::kEnded) continue;
    dispatcher_.DropUnposted(*queue, TransferError::kStopping);
    Unlist(*queue);
    dispatcher_.Ready(*queue);
  }
}

void Lane::QuitHere() {
  quit_ = true;
  for (auto& [queue, owner] : owned_) {
    if (queue->place != ServedQueue::Place::kEnded) {
      dispatcher_.End(*queue, QueueState::kClosed, TransferError::kStopping);
    }
    queue->ring.Publish();
  }
}

void Lane::MarkIdle() {
  ub::MutexLock lock(&mu_);
  idle_ = true;
  changed_.SignalAll();
}

}  // namespace ubd
