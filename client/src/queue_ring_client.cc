#include "client/src/queue_ring_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client/src/fork_guard.h"
#include "client/src/futex.h"
#include "client/src/mapping.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

absl::Status NotAQueue(const char* what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kMalformedFrame,
                   std::string("the daemon sent a queue that libub does not understand (") + what +
                       "); are libub and ubd of one release?");
}

bool EntriesAreSound(uint32_t entries) {
  return std::has_single_bit(entries) && entries >= wire::kMinQueueEntries && entries <= 2 * wire::kMaxQueueEntries;
}

std::byte* At(void* memory, size_t offset) { return static_cast<std::byte*>(memory) + offset; }

uint64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueueRingClient>> QueueRingClient::Map(UniqueFd memory, UniqueFd event,
                                                                      const QueueShape& shape) {
  const wire::QueueLayout& layout = shape.layout;
  if (!EntriesAreSound(layout.sq_entries) || !EntriesAreSound(layout.cq_entries)) return NotAQueue("sizes");
  if (absl::Status bad = CheckSealedMemfd(memory.get(), layout.bytes()); !bad.ok()) return bad;
  // A full counter must not block whoever rings the bell.
  int flags = ::fcntl(event.get(), F_GETFL);
  if (flags < 0 || ::fcntl(event.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return ErrnoError(errno, "fcntl of a queue's eventfd");
  void* at = ::mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (at == MAP_FAILED) return ErrnoError(errno, "mmap of a queue");
  auto ring = std::make_unique<QueueRingClient>(at, std::move(event), shape);
  ring->mapping_ = at;
  if (::madvise(at, layout.bytes(), MADV_DONTFORK) != 0) return ErrnoError(errno, "madvise of a queue");
  wire::QueueHeader header;
  std::memcpy(&header, at, sizeof(header));
  bool sound = header.magic == wire::kQueueMagic && header.queue == shape.id &&
               header.sq_entries == layout.sq_entries && header.cq_entries == layout.cq_entries &&
               header.sq_offset == wire::kSubmitRingOffset && header.cq_offset == layout.cq_offset() &&
               header.bytes == layout.bytes();
  if (!sound) return NotAQueue("header");
  CloseInChild(ring->event_.get());
  return ring;
}

QueueRingClient::QueueRingClient(void* memory, UniqueFd event, const QueueShape& shape)
    : layout_(shape.layout),
      indices_(reinterpret_cast<wire::QueueIndices*>(At(memory, wire::kQueueIndicesOffset))),
      submits_(reinterpret_cast<wire::SubmitEntry*>(At(memory, wire::kSubmitRingOffset))),
      completions_(reinterpret_cast<wire::CompletionEntry*>(At(memory, shape.layout.cq_offset()))),
      event_(std::move(event)),
      spin_ns_(std::min<uint64_t>(shape.spin_ns, 10000000)),
      spin_(spin_ns_, AdaptiveSpin::kClientProbe) {}

QueueRingClient::~QueueRingClient() {
  ForgetInChild(event_.get());
  if (mapping_ != nullptr) ::munmap(mapping_, layout_.bytes());
}

uint32_t QueueRingClient::Room(uint32_t wanted) {
  uint32_t room = layout_.sq_entries - (sq_tail_ - sq_head_);
  if (room >= wanted) return room;
  uint32_t head = indices_->sq_head.load(std::memory_order_acquire);
  if (head - sq_head_ > sq_tail_ - sq_head_) {
    Break("more entries taken than were submitted");
    return 0;
  }
  sq_head_ = head;
  return layout_.sq_entries - (sq_tail_ - sq_head_);
}

void QueueRingClient::Put(uint32_t index, const wire::SubmitEntry& entry) {
  submits_[(sq_tail_ + index) & (layout_.sq_entries - 1)] = entry;
}

bool QueueRingClient::Publish(uint32_t count) {
  sq_tail_ += count;
  unanswered_ += count;
  indices_->sq_tail.store(sq_tail_, std::memory_order_release);
  return RingIfAsleep();
}

bool QueueRingClient::RingIfAsleep() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (indices_->daemon_sleep.load(std::memory_order_relaxed) == static_cast<uint32_t>(wire::DaemonSleep::kAwake))
    return false;
  uint64_t one = 1;
  // EAGAIN: the counter is full, so the daemon has been told often enough.
  [[maybe_unused]] ssize_t written = ::write(event_.get(), &one, sizeof(one));
  return true;
}

bool QueueRingClient::Take(wire::CompletionEntry& entry) {
  if (cq_head_ == cq_tail_) {
    uint32_t tail = indices_->cq_tail.load(std::memory_order_acquire);
    if (tail - cq_head_ > layout_.cq_entries) {
      Break("more completions than there are places");
      return false;
    }
    cq_tail_ = tail;
    if (cq_head_ == cq_tail_) return false;
  }
  entry = completions_[cq_head_ & (layout_.cq_entries - 1)];
  ++cq_head_;
  if ((entry.flags & wire::kCompletionMore) == 0) ++answered_;
  return true;
}

bool QueueRingClient::EndTake() {
  if (cq_head_ == cq_head_shown_) return false;
  cq_head_shown_ = cq_head_;
  indices_->cq_head.store(cq_head_, std::memory_order_release);
  // An entry needs at most two places, so with fewer than this many open no entry can have been refused for want of
  // one.
  bool may_wait_for_room = uint64_t{unanswered_} * 2 + 2 > layout_.cq_entries;
  unanswered_ -= std::min(answered_, unanswered_);
  answered_ = 0;
  return may_wait_for_room && RingIfAsleep();
}

QueueRingClient::Life QueueRingClient::life() const {
  if (broken_[0] != '\0') return Life::kBroken;
  uint32_t state = indices_->state.load(std::memory_order_acquire);
  if (state == static_cast<uint32_t>(wire::QueueState::kBroken)) return Life::kBroken;
  if (ended_.load(std::memory_order_acquire)) return Life::kSessionEnded;
  return state == static_cast<uint32_t>(wire::QueueState::kOpen) ? Life::kOpen : Life::kClosed;
}

bool QueueRingClient::Ready() const {
  return cq_head_ != cq_tail_ || indices_->cq_tail.load(std::memory_order_acquire) != cq_head_ || life() != Life::kOpen;
}

bool QueueRingClient::Await(Deadline deadline, uint64_t& sleeps) {
  if (Ready()) return true;
  uint64_t begin = NowNs();
  uint64_t spin_until = begin + spin_.budget_ns();
  uint64_t give_up = begin + static_cast<uint64_t>(absl::ToInt64Nanoseconds(deadline.left()));
  constexpr int kLooks = 32;  // between looks at the clock
  while (true) {
    for (int i = 0; i < kLooks; ++i) {
      if (Ready()) {
        spin_.Event(NowNs() - begin);
        return true;
      }
      SpinPause();
    }
    uint64_t now = NowNs();
    if (now >= give_up) return Ready();
    if (now < spin_until) continue;
    ++sleeps;
    Sleep(deadline);
  }
}

void QueueRingClient::Sleep(Deadline deadline) {
  uint32_t seen = indices_->wake_count.load(std::memory_order_acquire);
  indices_->waiters.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!Ready()) FutexWait(indices_->wake_count, seen, deadline.left());
  indices_->waiters.fetch_sub(1, std::memory_order_relaxed);
}

void QueueRingClient::End() {
  ended_.store(true, std::memory_order_release);
  // The daemon only counts wake-ups there; one more does no harm.
  indices_->wake_count.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(indices_->wake_count);
}

}  // namespace ub
