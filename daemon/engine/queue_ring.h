// The daemon's end of a queue (proto/wire/queue_layout.h has layout and protocol). It believes nothing that it reads:
// its own head and tail are kept beside the shared memory, an entry is copied before anybody looks at it, and indices
// that cannot be end the queue. Not thread-safe: one lane owns it.
#ifndef UBD_ENGINE_QUEUE_RING_H_
#define UBD_ENGINE_QUEUE_RING_H_

#include <cstddef>
#include <cstdint>

#include "proto/wire/queue_layout.h"

namespace ubd {

class QueueRing {
 public:
  // `memory` has layout.bytes() bytes, zeroed, aligned to 4096, and must outlive the ring. Writes header and state.
  // Indices start at `first_index` (tests of the wrap at 2^32).
  QueueRing(void* memory, ub::wire::QueueLayout layout, uint32_t queue_id, uint32_t first_index = 0);

  // Copies the next entry out; the client sees its place free again at Publish. False: there is none, or no room for
  // the completions that it may need (NeedsRoom tells which), or the queue is broken. Reserves the room.
  bool Take(ub::wire::SubmitEntry& entry);
  // Submitted and not taken. 0 for a broken queue.
  uint32_t Waiting();
  // Take failed for want of room: the client must read completions first.
  bool NeedsRoom() const { return needs_room_; }
  // Whether the entry that Take last refused for want of room now has it. False for a broken queue.
  bool HasRoomNow();

  // Writes one completion into the reserved room; visible to the client at Publish. With kCompletionMore one place
  // stays reserved for the last.
  void Complete(const ub::wire::CompletionEntry& completion);
  // A taken entry that had a deadline and is answered once only: gives its second place back.
  void GiveBackRoom(uint32_t places) { reserved_ -= places; }
  uint32_t reserved() const { return reserved_; }
  // Shows what was taken and what was completed; wakes the client if it sleeps. True: it was woken.
  bool Publish();

  // Before the lane sleeps on this queue's eventfd. False: something came meanwhile, do not sleep. A queue that needs
  // room may sleep on what waits; the client does not say when it reads completions, so look at HasRoomNow at times.
  bool PrepareSleep();
  void EndSleep();

  // Nothing is taken any more; the client sees the state and is woken.
  void Close(ub::wire::QueueState state);
  // "" or what the client did.
  const char* broken() const { return broken_; }

  uint32_t unread();
  const ub::wire::QueueLayout& layout() const { return layout_; }

  // Places that a taken entry needs: 2 with a deadline, else 1.
  static uint32_t PlacesFor(const ub::wire::SubmitEntry& entry) { return entry.deadline_ms != 0 ? 2 : 1; }

 private:
  void Break(const char* why);
  // Bounded: what waits on the futex is the client's choice, and the lane pays for each that it wakes.
  static constexpr int kMostWoken = 16;
  void Wake();
  void ShowTaken();
  // What has been read, checked; false: it cannot be, and the queue is broken.
  bool ReadCqHead();
  bool RoomFor(uint32_t places);
  ub::wire::QueueIndices& indices() const { return *indices_; }

  const ub::wire::QueueLayout layout_;
  ub::wire::QueueIndices* const indices_;
  ub::wire::SubmitEntry* const submits_;
  ub::wire::CompletionEntry* const completions_;
  uint32_t sq_head_ = 0;  // truth
  uint32_t sq_head_shown_ = 0;
  uint32_t sq_tail_ = 0;  // as last read and checked
  uint32_t cq_head_ = 0;  // as last read and checked
  uint32_t cq_tail_ = 0;  // truth, unpublished ones included
  uint32_t published_ = 0;
  uint32_t reserved_ = 0;  // places promised to taken entries
  bool needs_room_ = false;
  uint32_t wanted_places_ = 0;  // when needs_room_
  uint32_t tail_at_refusal_ = 0;
  bool closed_ = false;
  const char* broken_ = "";
};

}  // namespace ubd

#endif  // UBD_ENGINE_QUEUE_RING_H_
