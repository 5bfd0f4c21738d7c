// What stands behind a ub::Batcher. Records are laid one after another into batches that end at multiples of the batch
// size in the file, so that all but the first and the last are aligned as direct transfers need it; a record may lie in
// several batches. For one thread at a time.
#ifndef UB_SRC_BATCHER_IMPL_H_
#define UB_SRC_BATCHER_IMPL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "client/src/fork_guard.h"
#include "client/src/mono_time.h"
#include "ub/batcher.h"

namespace ub {

class Batcher::Impl {
 public:
  Impl(Queue& queue, SlotPool& slots, File file, const BatcherOptions& options);

  absl::Status Add(absl::Span<const std::byte> record, Done done);
  size_t Poll();
  absl::Duration until_due() const;
  absl::Status Flush(Deadline deadline);
  Bytes position() const { return Bytes(position_); }
  const ForkGuard& guard() const { return guard_; }

 private:
  struct Record {
    Done done;
    uint32_t parts = 0;  // that have no completion yet
    Completion result;
  };
  struct Part {
    std::shared_ptr<Record> record;
    uint64_t length = 0;
  };
  struct Batch {
    Slot slot;
    uint64_t offset = 0;  // in the file
    uint64_t capacity = 0;
    uint64_t filled = 0;
    std::vector<Part> parts;
    Deadline due = Deadline::After(absl::ZeroDuration());
  };
  struct Failed {
    Batch batch;
    absl::Status status;
  };

  uint64_t CapacityAt(uint64_t offset) const { return size_ - offset % size_; }
  bool TakeSlots(uint64_t length, std::vector<Slot>& slots);
  void Begin(Slot slot);
  void Fill(absl::Span<const std::byte>& rest, const std::shared_ptr<Record>& record);
  void Seal();
  void Submit();
  size_t Read(absl::Span<const Completion> completions);
  size_t TellFailed();
  size_t Tell(const std::vector<Part>& parts, const Completion& done);
  void FailAll(const absl::Status& status);

  Queue& queue_;
  SlotPool& slots_;
  const File file_;
  const BatcherOptions options_;
  const uint64_t size_;
  uint64_t position_;
  uint64_t next_tag_ = 1;
  std::unique_ptr<Batch> current_;
  std::deque<Batch> sealed_;                    // wait for room in the queue
  std::unordered_map<uint64_t, Batch> flying_;  // by tag
  std::deque<Failed> failed_;                   // could not be submitted; not told yet
  absl::Status first_error_;                    // since the last Flush
  const ForkGuard guard_;
};

}  // namespace ub

#endif  // UB_SRC_BATCHER_IMPL_H_
