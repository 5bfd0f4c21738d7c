// One transfer, from the moment its entry is taken until its last completion. Owned by the lane that took it; engines
// hold pieces of it by number (Flights) while they are in flight.
//
//   entry --> checked --> [ posted in pieces <--> results, pieces posted again ] --> finished --> completion
//                             `end` is where it stopped: at its length, at the end of the file, or at the first fault
#ifndef UBD_ENGINE_TRANSFER_H_
#define UBD_ENGINE_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/core/broker.h"
#include "daemon/engine/file_target.h"
#include "daemon/engine/links.h"
#include "daemon/engine/mono_ns.h"
#include "proto/wire/queue_layout.h"

namespace ubd {

class ServedQueue;

// A stretch of memory that a device can take in one go: within one block.
struct Stretch {
  void* address = nullptr;
  uint64_t length = 0;
  uint32_t slot = 0;  // of the backing: the fixed buffer's index
  BlockId block;
};

// The stretches of one side, and how far they are used.
struct Cursor {
  std::vector<Stretch> stretches;  // keeps its capacity when the transfer is recycled
  size_t at = 0;
  uint64_t used = 0;  // of stretches[at]

  uint64_t left() const { return stretches[at].length - used; }
  void* address() const { return static_cast<char*>(stretches[at].address) + used; }
  const Stretch& stretch() const { return stretches[at]; }
  void Advance(uint64_t bytes) {
    used += bytes;
    if (used < stretches[at].length) return;
    ++at;
    used = 0;
  }
  void Clear() {
    stretches.clear();
    at = 0;
    used = 0;
  }
};

// Who does the work: this lane's own ring, the ring for devices that may hang, the copy thread.
enum class Port : uint8_t { kRing, kSlow, kCopy };
inline constexpr size_t kPorts = 3;

struct Transfer {
  ub::wire::SubmitEntry entry;  // the daemon's own copy
  ServedQueue* queue = nullptr;

  RangePin memory;                   // source of WRITE and COPY, target of READ
  RangePin second;                   // target of COPY
  Cursor from;                       // of `memory`
  Cursor to;                         // of `second`
  std::shared_ptr<FileTarget> file;  // READ, WRITE, FSYNC
  Port port = Port::kRing;

  ub::wire::PathPolicy policy = ub::wire::PathPolicy::kDefault;
  ub::wire::Path path = ub::wire::Path::kNone;
  ub::wire::PathReason path_reason = ub::wire::PathReason::kNone;
  bool registered = false;  // every piece so far went by a fixed buffer

  uint64_t length = 0;      // to post; 1 for an FSYNC, which has one piece without bytes
  uint64_t posted = 0;      // handed to the device so far
  uint64_t end = kNeverNs;  // nothing from here on counts
  uint32_t in_flight = 0;   // pieces
  bool ended = false;       // post no more
  ub::wire::TransferError error = ub::wire::TransferError::kOk;
  uint16_t detail = 0;     // errno
  bool cancelled = false;  // by CANCEL: completes as such, whatever the device makes of it
  bool answered = false;   // the deadline has told the caller; the last completion says that the memory is free again

  uint64_t taken_ns = 0;
  uint64_t deadline_ns = kNeverNs;
  uint64_t first_post_ns = 0;
  uint64_t last_done_ns = 0;

  Links<Transfer> flying;   // in its queue, in the order of taking
  Links<Transfer> waiting;  // in its queue, for its port: has pieces to post

  bool finished() const { return in_flight == 0 && (ended || posted == length); }
  // Nothing at or beyond `at` counts. Of several stops the one at the lowest offset says how it went.
  void StopAt(uint64_t at, ub::wire::TransferError why, uint16_t error_number) {
    ended = true;
    if (at >= end) return;
    end = at;
    error = why;
    detail = error_number;
  }
  uint64_t moved() const {
    const uint64_t so_far = end < posted ? end : posted;
    return entry.op == static_cast<uint8_t>(ub::wire::Op::kFsync) ? 0 : so_far;
  }
  // As new, with the memory of its vectors.
  void Recycle();
};

using FlyingList = LinkedList<Transfer, &Transfer::flying>;
using WaitingList = LinkedList<Transfer, &Transfer::waiting>;

}  // namespace ubd

#endif  // UBD_ENGINE_TRANSFER_H_
