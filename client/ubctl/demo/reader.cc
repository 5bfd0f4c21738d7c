#include "client/ubctl/demo/reader.h"

#include <algorithm>
#include <array>

namespace ub::ctl {
namespace {

constexpr uint32_t kEntries = 8;  // more than are ever begun ahead
// For one chunk from the device; a slow disk is no fault.
constexpr absl::Duration kLeastPatience = absl::Seconds(60);

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(Client& client, const SourceFile& source,
                                                     absl::Duration patience) {
  std::unique_ptr<Reader> reader(new Reader(source, std::max(patience, kLeastPatience)));
  if (source.size() == 0) return reader;
  auto file = File::FromDescriptor(client, source.fd(), patience);
  if (!file.ok()) return file.status();
  reader->file_ = *std::move(file);
  auto queue = Queue::Open(client, {.depth = kEntries, .deadline = patience});
  if (!queue.ok()) return queue.status();
  reader->queue_ = *std::move(queue);
  return reader;
}

absl::Status Reader::Begin(Lease lease, uint64_t bytes) {
  uint64_t unit = file_.direct() ? std::max<uint64_t>(file_.offset_align().count(), 1) : 1;
  // The last chunk may end anywhere: asking for a whole sector keeps it direct, and the file's end cuts it.
  uint64_t asked = std::min<uint64_t>((bytes + unit - 1) / unit * unit, lease.size());
  Reading reading = {.chunk = {.lease = std::move(lease), .offset = position_, .bytes = bytes}, .tag = next_tag_++};
  Op op = ReadOp(reading.tag, file_, Bytes(position_), reading.chunk.lease, Bytes(0), Bytes(asked));
  if (absl::Status status = queue_->Submit({&op, 1}); !status.ok()) return status;
  position_ += bytes;
  chunks_.push_back(std::move(reading));
  return absl::OkStatus();
}

absl::StatusOr<Reader::Chunk> Reader::Take() {
  while (!chunks_.front().done) {
    if (absl::Status status = Collect(); !status.ok()) return status;
  }
  Reading reading = std::move(chunks_.front());
  chunks_.pop_front();
  if (!reading.status.ok()) return reading.status;
  absl::Status whole = source_.CheckRead(reading.chunk.offset, reading.chunk.bytes, reading.got);
  if (!whole.ok()) return whole;
  return std::move(reading.chunk);
}

absl::Status Reader::Collect() {
  std::array<Completion, kEntries> done;
  auto got = queue_->Wait(absl::MakeSpan(done), 1, patience_);
  if (!got.ok()) return got.status();
  for (size_t i = 0; i < *got; ++i) {
    if (done[i].more) continue;
    for (Reading& reading : chunks_) {
      if (reading.tag != done[i].tag) continue;
      reading.done = true;
      reading.status = done[i].status;
      reading.got = done[i].bytes.count();
    }
    if (done[i].status.ok()) paths_.Add(done[i]);
  }
  return absl::OkStatus();
}

}  // namespace ub::ctl
