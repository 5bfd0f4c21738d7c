// Doubles for lanes and dispatchers: a ring whose pieces end when and how the test says, a worker likewise, files that
// are what the test says, and memory without a pool behind it. The ring is thread-safe, so that it can stand in a lane.
#ifndef UBD_TESTS_UNIT_ENGINE_FAKES_H_
#define UBD_TESTS_UNIT_ENGINE_FAKES_H_

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/engine/file_ring.h"
#include "daemon/engine/piece.h"
#include "daemon/memory/memory.h"
#include "proto/wire/mutex.h"

namespace ubd {

class FakeRing : public FileRing {
 public:
  explicit FakeRing(uint32_t depth = 16) : depth_(depth), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  absl::Status Register(uint32_t slot, void*, Bytes) override {
    ub::MutexLock lock(&mu_);
    registered_.insert(slot);
    return absl::OkStatus();
  }
  void Unregister(uint32_t slot) override {
    ub::MutexLock lock(&mu_);
    registered_.erase(slot);
  }
  bool Registered(uint32_t slot) const override {
    ub::MutexLock lock(&mu_);
    return registered_.contains(slot);
  }
  std::string RegistrationText() const override { return "fake"; }
  uint32_t Room() const override { return depth_ - in_flight(); }
  uint32_t in_flight() const override {
    ub::MutexLock lock(&mu_);
    return static_cast<uint32_t>(posted_.size() + results_.size());
  }
  bool Post(const FilePiece& piece) override {
    ub::MutexLock lock(&mu_);
    posted_.push_back(piece);
    ++posts_;
    return registered_.contains(piece.slot);
  }
  void Cancel(uint64_t tag) override {
    ub::MutexLock lock(&mu_);
    cancelled_.push_back(tag);
  }
  void Submit() override {}
  size_t Reap(absl::Span<FileResult> out) override {
    ub::MutexLock lock(&mu_);
    size_t count = 0;
    for (; count < out.size() && !results_.empty(); ++count) {
      out[count] = results_.front();
      results_.pop_front();
    }
    uint64_t none = 0;
    if (count != 0 && results_.empty()) static_cast<void>(!read(event_.get(), &none, sizeof(none)));
    return count;
  }
  int fd() const override { return event_.get(); }

  // --- the test's side
  std::vector<FilePiece> posted() const {
    ub::MutexLock lock(&mu_);
    return posted_;
  }
  uint64_t posts() const {
    ub::MutexLock lock(&mu_);
    return posts_;
  }
  std::vector<uint64_t> cancelled() const {
    ub::MutexLock lock(&mu_);
    return cancelled_;
  }
  // The oldest piece that is posted ends so; `all`: it ends in full. Pieces may be ended in another order by `at`.
  static constexpr int32_t kAll = INT32_MAX;
  FilePiece End(int32_t result = kAll, size_t at = 0) {
    ub::MutexLock lock(&mu_);
    FilePiece piece = posted_.at(at);
    posted_.erase(posted_.begin() + static_cast<ptrdiff_t>(at));
    const int32_t bytes = piece.kind == FilePiece::Kind::kFsync ? 0 : static_cast<int32_t>(piece.length);
    results_.push_back({piece.tag, result == kAll ? bytes : result});
    const uint64_t one = 1;
    static_cast<void>(!write(event_.get(), &one, sizeof(one)));
    return piece;
  }

 private:
  const uint32_t depth_;
  const ub::UniqueFd event_;
  mutable ub::Mutex mu_;
  std::set<uint32_t> registered_ ABSL_GUARDED_BY(mu_);
  std::vector<FilePiece> posted_ ABSL_GUARDED_BY(mu_);
  std::deque<FileResult> results_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> cancelled_ ABSL_GUARDED_BY(mu_);
  uint64_t posts_ ABSL_GUARDED_BY(mu_) = 0;
};

class FakeWorker : public PieceWorker {
 public:
  void Hand(const PieceOrder& order) override { orders.push_back(order); }
  void Cancel(ResultSink*, uint64_t tag) override { cancelled.push_back(tag); }
  bool Registered(uint32_t) const override { return false; }
  std::vector<PieceOrder> orders;
  std::vector<uint64_t> cancelled;
};

// Every block at its place in one stretch of ordinary memory.
class FlatMemory : public Memory {
 public:
  FlatMemory(uint32_t blocks, Bytes block_bytes)
      : blocks_(blocks),
        block_bytes_(block_bytes),
        data_(static_cast<char*>(
            mmap(nullptr, blocks * block_bytes.count(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~FlatMemory() override { munmap(data_, blocks_ * block_bytes_.count()); }
  FlatMemory(const FlatMemory&) = delete;
  FlatMemory& operator=(const FlatMemory&) = delete;
  absl::Status RegisterWith(Registrar* registrar) override {
    for (uint32_t i = 0; i < blocks_; ++i) {
      absl::Status status = registrar->Register(i, Locate(BlockId(i)).address, block_bytes_);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  uint32_t Slots() const override { return blocks_; }
  MappedBlock Locate(BlockId block) const override {
    if (block.value() >= blocks_) return {};
    return {data_ + block.value() * block_bytes_.count(), block_bytes_, block.value()};
  }
  void Touched(BlockId block) override { touched.insert(block); }
  absl::StatusOr<BlockId> AddOwn(ub::UniqueFd, Bytes, Bytes, Access) override { return absl::UnimplementedError(""); }
  void Start(ReclaimSink*) override {}
  void Stop() override {}
  absl::StatusOr<ub::UniqueFd> OpenForHolder(BlockId, Access) override { return absl::UnimplementedError(""); }
  std::vector<PoolFacts> Facts() const override { return {}; }
  std::string ReuseTest() const override { return ""; }
  void Reclaim(BlockId, ReclaimOrder) override {}
  void DropOwn(BlockId) override {}

  std::set<BlockId> touched;

 private:
  const uint32_t blocks_;
  const Bytes block_bytes_;
  char* const data_;
};

class FakeFile : public FileTarget {
 public:
  FakeFile() {
    facts_.trusted = facts_.readable = facts_.writable = facts_.direct = true;
    facts_.memory_align = facts_.offset_align = 512;
    direct_ = ub::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
    staged_ = ub::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  bool FlagsChanged() const override { return changed; }
  FileFacts& facts_to_set() { return facts_; }
  void DropStaged() { staged_.reset(); }
  bool changed = false;
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_ENGINE_FAKES_H_
