// A client's end of a queue, for tests: as simple as the protocol allows, with every step open to misuse.
#ifndef UBD_TESTS_UNIT_ENGINE_RING_CLIENT_H_
#define UBD_TESTS_UNIT_ENGINE_RING_CLIENT_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "proto/wire/queue_layout.h"

namespace ubd {

class RingClient {
 public:
  RingClient(void* memory, ub::wire::QueueLayout layout, int event_fd = -1)
      : memory_(static_cast<char*>(memory)), layout_(layout), event_fd_(event_fd) {}

  ub::wire::QueueIndices& indices() const {
    return *reinterpret_cast<ub::wire::QueueIndices*>(memory_ + ub::wire::kQueueIndicesOffset);
  }
  ub::wire::SubmitEntry* submits() const {
    return reinterpret_cast<ub::wire::SubmitEntry*>(memory_ + ub::wire::kSubmitRingOffset);
  }
  ub::wire::CompletionEntry* completions() const {
    return reinterpret_cast<ub::wire::CompletionEntry*>(memory_ + layout_.cq_offset());
  }
  bool Full() const { return tail_ - indices().sq_head.load(std::memory_order_acquire) == layout_.sq_entries; }

  // Fills the next place, not yet visible.
  void Push(const ub::wire::SubmitEntry& entry) { submits()[tail_++ & (layout_.sq_entries - 1)] = entry; }
  // Shows what was pushed and rings where the daemon sleeps. True: it rang.
  bool Show() {
    indices().sq_tail.store(tail_, std::memory_order_release);
    pause(0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    pause(1);
    if (indices().daemon_sleep.load(std::memory_order_relaxed) == 0) return false;
    const uint64_t one = 1;
    return event_fd_ < 0 || write(event_fd_, &one, sizeof(one)) == sizeof(one);
  }
  bool Submit(const ub::wire::SubmitEntry& entry) {
    Push(entry);
    return Show();
  }
  // One completion, if there is any.
  std::optional<ub::wire::CompletionEntry> Poll() {
    if (indices().cq_tail.load(std::memory_order_acquire) == head_) return std::nullopt;
    ub::wire::CompletionEntry entry = completions()[head_ & (layout_.cq_entries - 1)];
    indices().cq_head.store(++head_, std::memory_order_release);
    return entry;
  }
  // Sleeps on the futex until there is one; never longer than `timeout_ms`.
  std::optional<ub::wire::CompletionEntry> Wait(int timeout_ms) {
    while (true) {
      const uint32_t seen = indices().wake_count.load(std::memory_order_acquire);
      indices().waiters.fetch_add(1);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      pause(2);
      std::optional<ub::wire::CompletionEntry> entry = Poll();
      long slept = 0;
      if (!entry) {
        pause(3);
        timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000L};
        slept = syscall(SYS_futex, &indices().wake_count, FUTEX_WAIT, seen, &timeout, nullptr, 0);
      }
      const bool late = slept != 0 && errno == ETIMEDOUT;
      indices().waiters.fetch_sub(1);
      if (entry) return entry;
      if (late) return std::nullopt;
    }
  }
  ub::wire::QueueState state() const { return static_cast<ub::wire::QueueState>(indices().state.load()); }

  // Delays at the protocol's critical points, for stress tests.
  std::function<void(int)> pause = [](int) {};

 private:
  char* memory_;
  ub::wire::QueueLayout layout_;
  int event_fd_;
  uint32_t tail_ = 0;
  uint32_t head_ = 0;

 public:
  // To start somewhere else than at 0.
  void StartAt(uint32_t tail, uint32_t head) {
    tail_ = tail;
    head_ = head;
  }
};

inline ub::wire::SubmitEntry Nop(uint64_t user_data, uint32_t deadline_ms = 0) {
  ub::wire::SubmitEntry entry = {};
  entry.user_data = user_data;
  entry.deadline_ms = deadline_ms;
  return entry;
}

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_ENGINE_RING_CLIENT_H_
