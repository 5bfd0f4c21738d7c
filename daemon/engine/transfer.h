// One transfer, from the moment its entry is taken until its last completion. Owned by the lane that took it; engines
// hold it by pointer while pieces of it are in flight.
#ifndef UBD_ENGINE_TRANSFER_H_
#define UBD_ENGINE_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/core/broker.h"
#include "daemon/engine/file_target.h"
#include "proto/wire/queue_layout.h"

namespace ubd {

class ServedQueue;

// A stretch of memory that a device can take in one go: within one block.
struct Stretch {
  void* address = nullptr;
  uint64_t length = 0;
  uint32_t slot = 0;  // of the backing: the fixed buffer's index
};

struct Transfer {
  ub::wire::SubmitEntry entry;  // the daemon's own copy
  ServedQueue* queue = nullptr;
  Uid uid;

  RangePin memory;                        // source of WRITE and COPY, target of READ
  RangePin second;                        // target of COPY
  std::vector<Stretch> stretches;         // of `memory`, in order
  std::vector<Stretch> second_stretches;  // of `second`
  std::shared_ptr<FileTarget> file;       // READ, WRITE, FSYNC

  ub::wire::Path path = ub::wire::Path::kNone;
  ub::wire::PathReason path_reason = ub::wire::PathReason::kNone;
  bool registered = true;  // every piece so far went by a fixed buffer

  uint64_t posted = 0;     // bytes handed to the device so far
  uint64_t done = 0;       // bytes that the device reported, without a gap from the start
  uint32_t in_flight = 0;  // pieces
  bool ended = false;      // post no more: short read, error, cancel
  ub::wire::TransferError error = ub::wire::TransferError::kOk;
  uint16_t detail = 0;  // errno

  MonoTime taken;
  MonoTime deadline = MonoTime::Never();
  bool answered = false;  // the deadline has told the caller; the last completion only says that memory is free again
  uint64_t first_post_ns = 0;
  uint64_t last_done_ns = 0;

  bool finished() const { return in_flight == 0 && (ended || posted == entry.length); }
};

}  // namespace ubd

#endif  // UBD_ENGINE_TRANSFER_H_
