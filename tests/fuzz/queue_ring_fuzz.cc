// A hostile client on a live ring: between any two steps of the daemon it writes whatever it likes wherever it likes.
// The daemon's end never touches a byte outside the memory (it ends where the allocation ends), never takes more than
// it can answer, keeps what it knows to itself, and stays broken once it is.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "daemon/engine/queue_ring.h"

namespace {

using ub::wire::CompletionEntry;
using ub::wire::QueueIndices;
using ub::wire::QueueLayout;
using ub::wire::SubmitEntry;
using ubd::QueueRing;

void Require(bool holds) {
  if (!holds) abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint32_t Number(size_t bytes) {
    uint32_t value = 0;
    for (; bytes > 0 && left_ > 0; --bytes, ++data_, --left_) value = value << 8 | *data_;
    return value;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

class Game {
 public:
  explicit Game(QueueLayout layout)
      : layout_(layout),
        memory_(static_cast<char*>(aligned_alloc(4096, layout.bytes()))),
        ring_((memset(memory_, 0, layout.bytes()), memory_), layout, 1) {}
  ~Game() { free(memory_); }
  Game(const Game&) = delete;
  Game& operator=(const Game&) = delete;

  void Step(Input& input) {
    switch (input.Number(1) % 10) {
      case 0:  // one index, near what it is
        *Index(input.Number(1)) += input.Number(1) - 128U;
        break;
      case 1:  // one index, anything
        *Index(input.Number(1)) = input.Number(4);
        break;
      case 2:  // a byte anywhere
        memory_[input.Number(3) % layout_.bytes()] = static_cast<char>(input.Number(1));
        break;
      case 3:  // an honest submission
        ++*Index(0);
        break;
      case 4:  // an honest reader
        *Index(3) = reinterpret_cast<std::atomic<uint32_t>*>(Index(2))->load();
        break;
      case 5:
        Take();
        break;
      case 6:
        CompleteOne(input.Number(1) % 2 == 0);
        break;
      case 7:
        ring_.Publish();
        break;
      case 8:
        if (ring_.PrepareSleep()) ring_.EndSleep();
        break;
      case 9:
        ring_.HasRoomNow();
        ring_.Waiting();
        break;
    }
    Check();
  }
  void Drain() {
    while (!taken_.empty()) CompleteOne(false);
    ring_.Publish();
    Require(ring_.reserved() == 0);
    Check();
  }

 private:
  uint32_t* Index(uint32_t which) {
    auto* indices = reinterpret_cast<QueueIndices*>(memory_ + ub::wire::kQueueIndicesOffset);
    std::atomic<uint32_t>* all[] = {&indices->sq_tail, &indices->sq_head,    &indices->cq_tail,      &indices->cq_head,
                                    &indices->waiters, &indices->wake_count, &indices->daemon_sleep, &indices->state};
    return reinterpret_cast<uint32_t*>(all[which % 8]);
  }
  void Take() {
    const bool was_broken = ring_.broken()[0] != '\0';
    SubmitEntry entry;
    if (!ring_.Take(entry)) return;
    Require(!was_broken);
    taken_.push_back({QueueRing::PlacesFor(entry), false});
  }
  // Ends the oldest transfer, or tells of its deadline first.
  void CompleteOne(bool deadline) {
    if (taken_.empty()) return;
    Taken& oldest = taken_.front();
    CompletionEntry completion = {};
    if (deadline && oldest.places == 2 && !oldest.told) {
      oldest.told = true;
      completion.flags = ub::wire::kCompletionMore;
      ring_.Complete(completion);
      return;
    }
    ring_.Complete(completion);
    if (oldest.places == 2 && !oldest.told) ring_.GiveBackRoom(1);
    taken_.pop_front();
  }
  void Check() {
    uint32_t promised = 0;
    for (const Taken& taken : taken_) promised += taken.places - (taken.told ? 1 : 0);
    Require(ring_.reserved() == promised);
    Require(promised <= layout_.cq_entries);
    Require(ring_.unread() <= layout_.cq_entries);
    if (ring_.broken()[0] != '\0') Require(ring_.Waiting() == 0);
  }

  struct Taken {
    uint32_t places;
    bool told;
  };
  const QueueLayout layout_;
  char* const memory_;
  QueueRing ring_;
  std::deque<Taken> taken_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint32_t sizes = input.Number(1);
  Game game({2U << (sizes % 4), 2U << (sizes / 4 % 5)});
  while (!input.empty()) game.Step(input);
  game.Drain();
  return 0;
}
