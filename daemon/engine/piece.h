// Pieces on their way between a lane and those who work for it.
#ifndef UBD_ENGINE_PIECE_H_
#define UBD_ENGINE_PIECE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "daemon/engine/file_ring.h"
#include "daemon/engine/transfer.h"

namespace ubd {

struct PieceResult {
  uint64_t tag = 0;
  int32_t result = 0;       // bytes, or -errno
  bool registered = false;  // went by a fixed buffer
};

// A lane, to whom results come back. Thread-safe.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual void Deliver(absl::Span<const PieceResult> results) = 0;
};

// For another thread. A copy goes from `from` to piece.address.
struct PieceOrder {
  FilePiece piece;
  const void* from = nullptr;
  ResultSink* sink = nullptr;
};

// Another thread that works for the lanes. Never blocks. Thread-safe.
class PieceWorker {
 public:
  virtual ~PieceWorker() = default;
  virtual void Hand(const PieceOrder& order) = 0;
  // The piece still comes back, cancelled or as it happened.
  virtual void Cancel(ResultSink* sink, uint64_t tag) = 0;
  // Pieces in this backing go by a fixed buffer.
  virtual bool Registered(uint32_t slot) const = 0;
};

// One piece of a transfer of this lane.
struct Flight {
  Transfer* transfer = nullptr;  // null: free
  uint64_t tag = 0;
  uint64_t at = 0;  // its first byte, in the transfer
  uint32_t length = 0;
  uint32_t got = 0;
  uint32_t slot = 0;
  void* address = nullptr;
  const void* from = nullptr;  // of a copy
  uint16_t tries = 0;
  bool direct = false;
};

// Hands out flights, by tags that are never 0. Not thread-safe; flights stay where they are.
class Flights {
 public:
  Flight& New(Transfer& transfer) {
    if (free_.empty()) {
      all_.emplace_back();
      all_.back().tag = all_.size();
      free_.push_back(&all_.back());
    }
    Flight* flight = free_.back();
    free_.pop_back();
    *flight = {.transfer = &transfer, .tag = flight->tag};
    return *flight;
  }
  void Free(Flight& flight) {
    flight.transfer = nullptr;
    free_.push_back(&flight);
  }
  // Null: no flight has this tag.
  Flight* Find(uint64_t tag) {
    if (tag == 0 || tag > all_.size() || all_[tag - 1].transfer == nullptr) return nullptr;
    return &all_[tag - 1];
  }
  const std::deque<Flight>& all() const { return all_; }

 private:
  std::deque<Flight> all_;
  std::vector<Flight*> free_;
};

}  // namespace ubd

#endif  // UBD_ENGINE_PIECE_H_
