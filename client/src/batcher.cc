#include "ub/batcher.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/batcher_impl.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

constexpr uint64_t kDefaultSize = 256 << 10;

uint64_t BatchSize(const Queue& queue, const SlotPool& slots, Bytes asked) {
  uint64_t size = asked.count() != 0 ? asked.count() : queue.batch_bytes().count();
  return std::clamp<uint64_t>(size == 0 ? kDefaultSize : size, 1, slots.slot_size());
}

absl::Status BadRecord(size_t size, size_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                   absl::StrCat("a record of ", size, " bytes: must have 1 to ", limit, " (a slot of the pool)"),
                   {{"field", "record"}, {"limit", absl::StrCat(limit)}});
}

absl::Status NoSlot() {
  return MakeError(absl::StatusCode::kResourceExhausted, Reason::kPoolEmpty,
                   "all slots of the pool are taken or in flight: call Poll until some are done");
}

absl::Status WroteLess() {
  return MakeError(absl::StatusCode::kInternal, Reason::kDeviceError,
                   "fewer bytes than asked for were written, without a reason");
}

// What a record says of its path when its parts went differently: the worse.
void Merge(Completion& result, const Completion& part) {
  if (result.status.ok()) result.status = part.status;
  result.bytes += part.bytes;
  if (result.path != Path::kStaged) {
    result.path = part.path;
    result.reason = part.reason;
  }
  result.from = part.from;
  result.to = part.to;
  result.registered = part.registered;
  result.device_time = std::max(result.device_time, part.device_time);
}

}  // namespace

Batcher::Impl::Impl(Queue& queue, SlotPool& slots, File file, const BatcherOptions& options)
    : queue_(queue),
      slots_(slots),
      file_(std::move(file)),
      options_(options),
      size_(BatchSize(queue, slots, options.size)),
      position_(options.offset.count()) {}

bool Batcher::Impl::TakeSlots(uint64_t length, std::vector<Slot>& slots) {
  uint64_t offset = position_;
  uint64_t room = current_ == nullptr ? 0 : current_->capacity - current_->filled;
  while (length > room) {
    length -= room;
    offset += room;
    room = CapacityAt(offset);
    Slot slot = slots_.Take();
    if (!slot) return false;
    slots.push_back(std::move(slot));
  }
  return true;
}

void Batcher::Impl::Begin(Slot slot) {
  current_ = std::make_unique<Batch>();
  current_->slot = std::move(slot);
  current_->offset = position_;
  current_->capacity = CapacityAt(position_);
  current_->due = Deadline::After(options_.delay);
}

void Batcher::Impl::Fill(absl::Span<const std::byte>& rest, const std::shared_ptr<Record>& record) {
  uint64_t length = std::min<uint64_t>(rest.size(), current_->capacity - current_->filled);
  std::memcpy(current_->slot.data() + current_->filled, rest.data(), length);
  current_->parts.push_back({record, length});
  ++record->parts;
  current_->filled += length;
  position_ += length;
  rest.remove_prefix(length);
}

absl::Status Batcher::Impl::Add(absl::Span<const std::byte> record, Done done) {
  if (record.empty() || record.size() > slots_.slot_size()) return BadRecord(record.size(), slots_.slot_size());
  std::vector<Slot> slots;
  if (!TakeSlots(record.size(), slots)) {
    // Should what is begun be all there is, then only its end makes a slot free.
    if (flying_.empty() && sealed_.empty()) Seal();
    Submit();
    return NoSlot();
  }
  auto made = std::make_shared<Record>();
  made->done = std::move(done);
  auto slot = slots.begin();
  while (!record.empty()) {
    if (current_ == nullptr) Begin(std::move(*slot++));
    Fill(record, made);
    if (current_->filled == current_->capacity) Seal();
  }
  Submit();
  return absl::OkStatus();
}

void Batcher::Impl::Seal() {
  if (current_ == nullptr) return;
  sealed_.push_back(std::move(*current_));
  current_.reset();
}

void Batcher::Impl::Submit() {
  while (!sealed_.empty()) {
    Batch& batch = sealed_.front();
    Op op = WriteOp(next_tag_, batch.slot, file_, Bytes(batch.offset), options_.transfer);
    op.entry.length = batch.filled;
    absl::Status submitted = queue_.Submit({&op, 1});
    if (ReasonOf(submitted) == Reason::kQueueFull && !flying_.empty()) return;
    if (submitted.ok()) {
      flying_.emplace(next_tag_++, std::move(batch));
    } else {
      failed_.push_back({std::move(batch), submitted});
    }
    sealed_.pop_front();
  }
}

size_t Batcher::Impl::Tell(const std::vector<Part>& parts, const Completion& done) {
  size_t told = 0;
  uint64_t before = 0;
  if (!done.status.ok() && first_error_.ok()) first_error_ = done.status;
  for (const Part& part : parts) {
    Completion mine = done;
    mine.bytes = Bytes(std::clamp<uint64_t>(done.bytes.count(), before, before + part.length) - before);
    before += part.length;
    bool whole = mine.bytes.count() == part.length;
    if (whole) mine.status = absl::OkStatus();
    if (!whole && done.status.ok()) mine.status = WroteLess();
    if (!mine.status.ok() && first_error_.ok()) first_error_ = mine.status;
    Merge(part.record->result, mine);
    if (--part.record->parts > 0) continue;
    ++told;
    if (part.record->done) part.record->done(part.record->result);
  }
  return told;
}

size_t Batcher::Impl::Read(absl::Span<const Completion> completions) {
  size_t told = 0;
  for (const Completion& done : completions) {
    auto it = flying_.find(done.tag);
    if (it == flying_.end()) continue;
    std::vector<Part> parts = std::move(it->second.parts);
    it->second.parts.clear();
    // Before anybody is told: a callback may want the slot.
    if (!done.more) flying_.erase(it);
    told += Tell(parts, done);
  }
  return told;
}

size_t Batcher::Impl::TellFailed() {
  size_t told = 0;
  while (!failed_.empty()) {
    Failed failed = std::move(failed_.front());
    failed_.pop_front();
    Completion done;
    done.status = failed.status;
    told += Tell(failed.batch.parts, done);
  }
  return told;
}

size_t Batcher::Impl::Poll() {
  if (current_ != nullptr && current_->due.passed()) Seal();
  Submit();
  std::array<Completion, 32> completions;
  size_t told = 0;
  while (size_t count = queue_.Poll(absl::MakeSpan(completions))) {
    told += Read({completions.data(), count});
    Submit();
  }
  return told + TellFailed();
}

absl::Duration Batcher::Impl::until_due() const {
  if (!failed_.empty()) return absl::ZeroDuration();
  return current_ == nullptr ? absl::InfiniteDuration() : current_->due.left();
}

void Batcher::Impl::FailAll(const absl::Status& status) {
  for (Batch& batch : sealed_) failed_.push_back({std::move(batch), status});
  sealed_.clear();
  for (auto& [tag, batch] : flying_) failed_.push_back({std::move(batch), status});
  flying_.clear();
}

absl::Status Batcher::Impl::Flush(Deadline deadline) {
  Seal();
  std::array<Completion, 32> completions;
  while (true) {
    Submit();
    TellFailed();
    if (flying_.empty() && sealed_.empty()) {
      if (current_ == nullptr) break;
      Seal();  // a callback has added
      continue;
    }
    absl::StatusOr<size_t> count = queue_.Wait(absl::MakeSpan(completions), 1, deadline.left());
    if (ReasonOf(count.status()) == Reason::kWaitTimeout) return count.status();
    if (count.ok() && *count > 0) {
      Read({completions.data(), *count});
    } else {
      FailAll(count.ok() ? absl::InternalError("the queue has lost a transfer") : count.status());
    }
  }
  return std::exchange(first_error_, absl::OkStatus());
}

Batcher::Batcher(Queue& queue, SlotPool& slots, File file, const BatcherOptions& options)
    : impl_(std::make_unique<Impl>(queue, slots, std::move(file), options)) {}

Batcher::~Batcher() {
  if (impl_->guard().forked()) {
    (void)impl_.release();  // everything behind it is the parent's; see fork_guard.h
    return;
  }
  impl_->Flush(Deadline::After(absl::InfiniteDuration())).IgnoreError();
}

absl::Status Batcher::Add(absl::Span<const std::byte> record, Done done) {
  if (impl_->guard().forked()) return impl_->guard().Check();
  return impl_->Add(record, std::move(done));
}
size_t Batcher::Poll() { return impl_->guard().forked() ? 0 : impl_->Poll(); }
absl::Duration Batcher::until_due() const { return impl_->until_due(); }
absl::Status Batcher::Flush(absl::Duration deadline) {
  if (impl_->guard().forked()) return impl_->guard().Check();
  return impl_->Flush(Deadline::After(deadline));
}
Bytes Batcher::position() const { return impl_->position(); }

}  // namespace ub
