// Small records in large transfers. Devices move 256 KiB as easily as 256 bytes, so records are packed into a slot, one
// after another, and written in one transfer when the slot holds enough or the oldest record has waited long enough.
// Every record gets a completion of its own.
//
//   ub::Batcher batcher(*queue, *slots, file, {.offset = ub::Bytes(0)});
//   batcher.Add(record, [](const ub::Completion& done) { ... });   // copied at once; `record` may go
//   batcher.Poll();                                                  // submits what is due, calls back what is done
#ifndef UB_BATCHER_H_
#define UB_BATCHER_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ub/queue.h"

namespace ub {

struct BatcherOptions {
  Bytes offset;           // in the file, of the first record; the others follow without gaps
  Bytes size = Bytes(0);  // submit at so many bytes; 0: as the daemon is configured (256 KiB for files)
  absl::Duration delay = absl::Milliseconds(1);  // or when the oldest record has waited so long
  TransferOptions transfer;
};

// For one thread at a time; the thread of its Queue, which must not be used for anything else meanwhile.
class Batcher {
 public:
  using Done = std::function<void(const Completion&)>;

  Batcher(Queue& queue, SlotPool& slots, File file, const BatcherOptions& options);
  // Flushes and waits.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // INVALID_ARGUMENT for a record that is larger than a slot. POOL_EMPTY when all slots are in flight: Poll first.
  absl::Status Add(absl::Span<const std::byte> record, Done done);
  // Submits what is due, calls back what is done; returns the number of records called back.
  size_t Poll();
  // When Poll is next needed although nothing completes; InfiniteFuture-like when no record waits.
  absl::Duration until_due() const;
  // Submits now, waits for all. The first error, if any.
  absl::Status Flush(absl::Duration deadline = absl::InfiniteDuration());

  Bytes position() const;  // where the next record goes in the file

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ub

#endif  // UB_BATCHER_H_
