#include "daemon/engine/queue_ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "proto/wire/version.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::DaemonSleep;
using ub::wire::QueueHeader;
using ub::wire::QueueIndices;
using ub::wire::QueueLayout;
using ub::wire::QueueState;
using ub::wire::SubmitEntry;

// What follows works on the copy, not on memory that changes under it.
inline void CopiedOnce() { asm volatile("" ::: "memory"); }

char* At(void* memory, size_t offset) { return static_cast<char*>(memory) + offset; }

}  // namespace

QueueRing::QueueRing(void* memory, QueueLayout layout, uint32_t queue_id, uint32_t first_index)
    : layout_(layout),
      indices_(new (At(memory, ub::wire::kQueueIndicesOffset)) QueueIndices{}),
      submits_(reinterpret_cast<SubmitEntry*>(At(memory, ub::wire::kSubmitRingOffset))),
      completions_(reinterpret_cast<CompletionEntry*>(At(memory, layout.cq_offset()))),
      sq_head_(first_index),
      sq_head_shown_(first_index),
      sq_tail_(first_index),
      cq_head_(first_index),
      cq_tail_(first_index),
      published_(first_index) {
  for (auto* index : {&indices_->sq_tail, &indices_->sq_head, &indices_->cq_tail, &indices_->cq_head}) {
    index->store(first_index, std::memory_order_relaxed);
  }
  QueueHeader header = {};
  header.magic = ub::wire::kQueueMagic;
  header.protocol = ub::ProtocolVersion();
  header.queue = queue_id;
  header.sq_entries = layout.sq_entries;
  header.cq_entries = layout.cq_entries;
  header.sq_offset = ub::wire::kSubmitRingOffset;
  header.cq_offset = static_cast<uint32_t>(layout.cq_offset());
  header.bytes = layout.bytes();
  memcpy(memory, &header, sizeof(header));
}

uint32_t QueueRing::Waiting() {
  if (closed_) return 0;
  const uint32_t waiting = indices().sq_tail.load(std::memory_order_acquire) - sq_head_;
  if (waiting > layout_.sq_entries) {
    Break("more entries submitted than the ring has");
    return 0;
  }
  return waiting;
}

bool QueueRing::Take(SubmitEntry& entry) {
  needs_room_ = false;
  if (sq_tail_ == sq_head_) sq_tail_ = sq_head_ + Waiting();
  if (sq_tail_ == sq_head_ || closed_) return false;
  memcpy(&entry, &submits_[sq_head_ & (layout_.sq_entries - 1)], sizeof(entry));
  CopiedOnce();
  const uint32_t places = PlacesFor(entry);
  if (!RoomFor(places)) {
    needs_room_ = !closed_;
    wanted_places_ = places;
    tail_at_refusal_ = sq_head_ + Waiting();
    return false;
  }
  reserved_ += places;
  ++sq_head_;
  return true;
}

bool QueueRing::ReadCqHead() {
  const uint32_t head = indices().cq_head.load(std::memory_order_acquire);
  if (head - cq_head_ > published_ - cq_head_) {
    Break("more completions read than there were, or some read twice");
    return false;
  }
  cq_head_ = head;
  return true;
}

bool QueueRing::RoomFor(uint32_t places) {
  if (reserved_ + (cq_tail_ - cq_head_) + places <= layout_.cq_entries) return true;
  return ReadCqHead() && reserved_ + (cq_tail_ - cq_head_) + places <= layout_.cq_entries;
}

bool QueueRing::HasRoomNow() { return !closed_ && RoomFor(wanted_places_); }

void QueueRing::Complete(const CompletionEntry& completion) {
  memcpy(&completions_[cq_tail_ & (layout_.cq_entries - 1)], &completion, sizeof(completion));
  ++cq_tail_;
  --reserved_;
}

void QueueRing::ShowTaken() {
  if (sq_head_shown_ == sq_head_) return;
  sq_head_shown_ = sq_head_;
  indices().sq_head.store(sq_head_, std::memory_order_release);
}

bool QueueRing::Publish() {
  ShowTaken();
  if (published_ == cq_tail_) return false;
  published_ = cq_tail_;
  indices().cq_tail.store(cq_tail_, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (indices().waiters.load(std::memory_order_relaxed) == 0) return false;
  Wake();
  return true;
}

void QueueRing::Wake() {
  indices().wake_count.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &indices().wake_count, FUTEX_WAKE, kMostWoken, nullptr, nullptr, 0);
}

bool QueueRing::PrepareSleep() {
  ShowTaken();
  indices().daemon_sleep.store(static_cast<uint32_t>(DaemonSleep::kAsleep), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t tail = indices().sq_tail.load(std::memory_order_acquire);
  const bool nothing_new = needs_room_ ? tail == tail_at_refusal_ && !HasRoomNow() : tail == sq_head_;
  if (closed_ || nothing_new) return true;
  EndSleep();
  return false;
}

void QueueRing::EndSleep() {
  indices().daemon_sleep.store(static_cast<uint32_t>(DaemonSleep::kAwake), std::memory_order_relaxed);
}

void QueueRing::Close(QueueState state) {
  closed_ = true;
  needs_room_ = false;
  Publish();
  indices().state.store(static_cast<uint32_t>(state), std::memory_order_release);
  Wake();
}

void QueueRing::Break(const char* why) {
  if (closed_) return;
  broken_ = why;
  Close(QueueState::kBroken);
}

uint32_t QueueRing::unread() {
  if (!closed_) ReadCqHead();
  return cq_tail_ - cq_head_;
}

}  // namespace ubd
