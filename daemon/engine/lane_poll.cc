// The lane's second part: which queues it looks at, and how it sleeps.
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "daemon/engine/lane.h"

namespace ubd {
namespace {

using ub::wire::QueueState;
using ub::wire::TransferError;
using Place = ServedQueue::Place;

// A client does not say when it has read completions. One that left no room for more is looked at again after this
// long, then ever more rarely.
constexpr uint64_t kFirstRoomPauseNs = 100'000;
constexpr uint64_t kLongestRoomPauseNs = 50'000'000;

void Erase(std::vector<ServedQueue*>& list, ServedQueue* queue) {
  list.erase(std::remove(list.begin(), list.end(), queue), list.end());
}

}  // namespace

void Lane::List(ServedQueue& queue) {
  if (queue.listed_at != ServedQueue::kUnlisted) return;
  queue.place = Place::kPolled;
  queue.listed_at = polled_.size();
  polled_.push_back(&queue);
}

void Lane::Unlist(ServedQueue& queue) {
  if (queue.listed_at == ServedQueue::kUnlisted) return;
  polled_[queue.listed_at] = polled_.back();
  polled_[queue.listed_at]->listed_at = queue.listed_at;
  polled_.pop_back();
  queue.listed_at = ServedQueue::kUnlisted;
}

bool Lane::EndedByItself(ServedQueue& queue) {
  if (queue.ring.broken()[0] == '\0') return false;
  Unlist(queue);
  if (queue.place != Place::kEnded) dispatcher_.End(queue, QueueState::kBroken, TransferError::kCancelled);
  return true;
}

bool Lane::Poll(uint64_t now_ns) {
  found_.clear();
  for (size_t i = 0; i < polled_.size();) {
    ServedQueue& queue = *polled_[i];
    queue.polls.Add();
    if (queue.ring.Waiting() != 0) {
      queue.spin.Event(now_ns - queue.poll_from_ns);
      found_.push_back(&queue);
      ++i;
    } else if (!EndedByItself(queue)) {
      queue.empty_polls.Add();
      ++i;
    }
  }
  if (found_.size() == 1 && !dispatcher_.has_ready()) {
    dispatcher_.ServeAlone(*found_.front(), now_ns);
    return true;
  }
  for (ServedQueue* queue : found_) {
    Unlist(*queue);
    dispatcher_.Ready(*queue);
  }
  return !found_.empty();
}

void Lane::Settle(uint64_t now_ns) {
  std::vector<ServedQueue*>& touched = dispatcher_.touched();
  // By index: what is done here may touch another one.
  for (size_t i = 0; i < touched.size(); ++i) {
    touched[i]->touched = false;
    touched[i]->ring.Publish();
    SettleOne(*touched[i], now_ns);
  }
  touched.clear();
}

void Lane::SettleOne(ServedQueue& queue, uint64_t now_ns) {
  if (queue.place != Place::kPolled) Unlist(queue);
  switch (queue.place) {
    case Place::kReady:
      return;
    case Place::kPolled:
      // What was completed may bring the next submission.
      queue.poll_from_ns = now_ns;
      List(queue);
      return;
    case Place::kAsleep:
      if (queue.spin.budget_ns() == 0) return;
      queue.ring.EndSleep();
      queue.poll_from_ns = now_ns;
      List(queue);
      return;
    case Place::kNoPlace:
      if (std::find(no_place_.begin(), no_place_.end(), &queue) == no_place_.end()) no_place_.push_back(&queue);
      return;
    case Place::kNoRoom:
      HoldForRoom(queue);
      return;
    case Place::kEnded:
      Erase(no_place_, &queue);
      Erase(no_room_, &queue);
      if (queue.closing && queue.flying.empty()) Forget(queue);
      return;
  }
}

void Lane::HoldForRoom(ServedQueue& queue) {
  if (std::find(no_room_.begin(), no_room_.end(), &queue) != no_room_.end()) return;
  if (!queue.ring.PrepareSleep()) {
    dispatcher_.Ready(queue);
    return;
  }
  if (EndedByItself(queue)) return;
  if (no_room_.empty()) room_pause_ns_ = kFirstRoomPauseNs;
  no_room_.push_back(&queue);
  // One that rings all the time must not put the others off.
  room_look_ns_ = std::min(room_look_ns_, MonoNs() + room_pause_ns_);
}

bool Lane::LookForRoom(uint64_t now_ns) {
  if (now_ns < room_look_ns_) return false;
  bool any = false;
  for (size_t i = 0; i < no_room_.size();) {
    ServedQueue& queue = *no_room_[i];
    const bool room = queue.ring.HasRoomNow();
    if (room || queue.ring.broken()[0] != '\0') {
      any = true;
      no_room_.erase(no_room_.begin() + static_cast<ptrdiff_t>(i));
      queue.ring.EndSleep();
      if (!EndedByItself(queue)) dispatcher_.Ready(queue);
    } else {
      ++i;
    }
  }
  room_pause_ns_ = any ? kFirstRoomPauseNs : std::min(room_pause_ns_ * 2, kLongestRoomPauseNs);
  room_look_ns_ = no_room_.empty() ? kNeverNs : now_ns + room_pause_ns_;
  return any;
}

void Lane::Release(std::vector<ServedQueue*>& held) {
  for (ServedQueue* queue : held) dispatcher_.Ready(*queue);
  held.clear();
}

void Lane::Arm(uint64_t now_ns) {
  for (size_t i = 0; i < polled_.size();) {
    ServedQueue& queue = *polled_[i];
    const bool idle = now_ns >= queue.poll_from_ns + queue.spin.budget_ns();
    if (!idle || !queue.ring.PrepareSleep()) {
      ++i;
      continue;
    }
    if (EndedByItself(queue)) continue;
    Unlist(queue);
    queue.place = Place::kAsleep;
    queue.sleeps.Add();
  }
}

void Lane::Sleep(uint64_t now_ns) {
  if (!inbox_.PrepareSleep()) return;
  const uint64_t next = std::min(dispatcher_.next_deadline_ns(), room_look_ns_);
  int timeout_ms = -1;
  if (next != kNeverNs) {
    constexpr uint64_t kMostMs = 3'600'000;
    const uint64_t left = next > now_ns ? next - now_ns : 0;
    timeout_ms = static_cast<int>(std::min((left + 999'999) / 1'000'000, kMostMs));
  }
  std::array<epoll_event, 64> events;
  // A signal (also one that only carries the ring's task work) is a wake-up like any other.
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  inbox_.EndSleep();
  for (int i = 0; i < count; ++i) {
    auto* queue = static_cast<ServedQueue*>(events[static_cast<size_t>(i)].data.ptr);
    if (queue != nullptr) Rung(*queue);
  }
}

// Anybody who holds the eventfd may ring it at any time: only what the ring says counts.
void Lane::Rung(ServedQueue& queue) {
  if (queue.place == Place::kNoRoom) {
    Erase(no_room_, &queue);
    if (no_room_.empty()) room_look_ns_ = kNeverNs;
    queue.ring.EndSleep();
    dispatcher_.Ready(queue);
  } else if (queue.place == Place::kAsleep) {
    queue.ring.EndSleep();
    List(queue);
  }
}

void Lane::Forget(ServedQueue& queue) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, queue.memory->event_fd(), nullptr);
  auto owner = owned_.extract(&queue);
  queue_count_.fetch_sub(1, std::memory_order_relaxed);
  shared_.queue_gone(queue);
}

}  // namespace ubd
