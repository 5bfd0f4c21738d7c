#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/load/plain_load.h"
#include "client/ubctl/load/positions.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"

namespace ub::ctl {
namespace {

class Memory {
 public:
  explicit Memory(size_t size)
      : size_(size),
        data_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Memory() {
    if (valid()) munmap(data_, size_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  bool valid() const { return data_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t size() const { return size_; }

 private:
  size_t size_;
  void* data_;
};

class Loop {
 public:
  Loop(int fd, const LoadPlan& plan, uint64_t chunks)
      : fd_(fd),
        plan_(plan),
        positions_(plan.chunk.count(), chunks, plan.random, plan.seed),
        memory_(plan.depth * plan.chunk.count()),
        submitted_at_(plan.depth) {}
  ~Loop() {
    if (ready_) io_uring_queue_exit(&ring_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  absl::Status Open() {
    if (!memory_.valid()) return ErrnoError(errno, "map memory for the plain loop");
    int error = io_uring_queue_init(std::max(plan_.depth, 2U), &ring_, 0);
    if (error != 0) return ErrnoError(-error, "io_uring_queue_init for the plain loop");
    ready_ = true;
    iovec vector = {.iov_base = memory_.data(), .iov_len = memory_.size()};
    error = io_uring_register_buffers(&ring_, &vector, 1);
    if (error != 0) return ErrnoError(-error, "io_uring_register_buffers for the plain loop (see ulimit -l)");
    return absl::OkStatus();
  }

  absl::StatusOr<LoadResult> Run() {
    uint64_t start = NowNs();
    absl::Status status;
    for (uint32_t tag = 0; tag < plan_.depth && Wanted(start); ++tag) Prepare(tag);
    while (in_flight_ > 0) {
      int error = io_uring_submit_and_wait(&ring_, 1);
      if (error < 0 && error != -EINTR) return ErrnoError(-error, "io_uring_submit_and_wait");
      uint64_t now = NowNs();
      io_uring_cqe* done = nullptr;
      while (io_uring_peek_cqe(&ring_, &done) == 0) {
        auto tag = static_cast<uint32_t>(done->user_data);
        if (absl::Status one = Take(*done, now - submitted_at_[tag]); status.ok()) status = one;
        io_uring_cqe_seen(&ring_, done);
        --in_flight_;
        if (status.ok() && Wanted(start)) Prepare(tag);
      }
    }
    result_.ns = NowNs() - start;
    if (!status.ok()) return status;
    return std::move(result_);
  }

 private:
  bool Wanted(uint64_t start) const {
    return (plan_.bytes.count() == 0 || asked_ < plan_.bytes.count()) &&
           absl::Nanoseconds(NowNs() - start) < plan_.at_most;
  }

  void Prepare(uint32_t tag) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    auto chunk = static_cast<unsigned>(plan_.chunk.count());
    io_uring_prep_read_fixed(entry, fd_, memory_.data() + tag * plan_.chunk.count(), chunk, positions_.Next(), 0);
    entry->user_data = tag;
    submitted_at_[tag] = NowNs();
    asked_ += plan_.chunk.count();
    ++in_flight_;
  }

  absl::Status Take(const io_uring_cqe& done, uint64_t latency) {
    if (done.res < 0) return ErrnoError(-done.res, "a direct read of the plain loop");
    if (static_cast<uint64_t>(done.res) != plan_.chunk.count())
      return absl::AbortedError(absl::StrCat("a direct read of the plain loop brought ", done.res, " bytes"));
    result_.latency.Add(latency);
    result_.bytes += plan_.chunk.count();
    ++result_.transfers;
    return absl::OkStatus();
  }

  int fd_;
  const LoadPlan& plan_;
  Positions positions_;
  Memory memory_;
  std::vector<uint64_t> submitted_at_;
  io_uring ring_ = {};
  bool ready_ = false;
  uint64_t asked_ = 0;
  uint32_t in_flight_ = 0;
  LoadResult result_;
};

}  // namespace

absl::StatusOr<LoadResult> RunPlainUring(int fd, const LoadPlan& plan, const CpuMeter& meter) {
  UniqueFd direct(open(absl::StrCat("/proc/self/fd/", fd).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  struct stat info = {};
  if (!direct.valid() || fstat(direct.get(), &info) != 0) return ErrnoError(errno, "open the file with O_DIRECT");
  uint64_t chunks = static_cast<uint64_t>(info.st_size) / plan.chunk.count();
  if (chunks == 0) return absl::FailedPreconditionError("the file is smaller than one chunk");
  Loop loop(direct.get(), plan, chunks);
  if (absl::Status status = loop.Open(); !status.ok()) return status;
  CpuTime before = meter.Now();
  auto result = loop.Run();
  if (result.ok()) result->cpu = meter.Now() - before;
  return result;
}

}  // namespace ub::ctl
