// Small records in large transfers. Devices move 256 KiB as easily as 256 bytes, so records are laid one after another
// into slots, and written in one transfer when so many bytes are there or the oldest record has waited long enough.
// Every record gets a completion of its own.
//
//   ub::Batcher batcher(*queue, *slots, file, {.offset = ub::Bytes(0)});
//   batcher.Add(record, [](const ub::Completion& done) { ... });   // copied at once; `record` may go
//   batcher.Poll();                                                // submits what is due, calls back what is done
//
// Transfers end at multiples of the batch size in the file, wherever the records end, so that all of them but the first
// and the last can go directly. A record that lies in two of them is done when both are; its path is the worse of
// both. A record that was not written leaves a gap: its completion says so, and those behind it stay where they are.
#ifndef UB_BATCHER_H_
#define UB_BATCHER_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ub/queue.h"

namespace ub {

struct BatcherOptions {
  Bytes offset;           // in the file, of the first record; the others follow without gaps
  Bytes size = Bytes(0);  // submit at so many bytes, at most a slot; 0: as the daemon is configured (256 KiB for files)
  absl::Duration delay = absl::Milliseconds(1);  // or when the oldest record has waited so long
  TransferOptions transfer;
};

// For one thread at a time; the thread of its Queue, which must not be used for anything else meanwhile. Queue, slots
// and file must outlive it.
class Batcher {
 public:
  // Called by Poll, Flush and the destructor, never by Add. May call Add.
  using Done = std::function<void(const Completion&)>;

  Batcher(Queue& queue, SlotPool& slots, File file, const BatcherOptions& options);
  // Flushes and waits.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // INVALID_ARGUMENT for a record that is empty or larger than a slot. POOL_EMPTY when there are not enough free slots:
  // Poll first.
  absl::Status Add(absl::Span<const std::byte> record, Done done);
  // Submits what is due, calls back what is done; returns the number of records called back.
  size_t Poll();
  // When Poll is next needed although nothing completes; InfiniteDuration when no record waits.
  absl::Duration until_due() const;
  // Submits now, waits for all. The first error since the last Flush, if any; WAIT_TIMEOUT when the deadline came
  // first.
  absl::Status Flush(absl::Duration deadline = absl::InfiniteDuration());

  Bytes position() const;  // where the next record goes in the file

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ub

#endif  // UB_BATCHER_H_
