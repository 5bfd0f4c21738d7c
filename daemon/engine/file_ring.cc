#include "daemon/engine/file_ring.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/engine/fixed_buffers.h"
#include "daemon/engine/ring_setup.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr uint32_t kMostDepth = 8192;
constexpr uint64_t kCancelTag = 0;  // pieces never have it

void Prepare(io_uring_sqe* sqe, const FilePiece& piece, bool fixed) {
  const auto slot = static_cast<int>(piece.slot);
  switch (piece.kind) {
    case FilePiece::Kind::kRead:
      if (fixed) return ::io_uring_prep_read_fixed(sqe, piece.fd, piece.address, piece.length, piece.offset, slot);
      return ::io_uring_prep_read(sqe, piece.fd, piece.address, piece.length, piece.offset);
    case FilePiece::Kind::kWrite:
      if (fixed) return ::io_uring_prep_write_fixed(sqe, piece.fd, piece.address, piece.length, piece.offset, slot);
      return ::io_uring_prep_write(sqe, piece.fd, piece.address, piece.length, piece.offset);
    case FilePiece::Kind::kFsync:
      return ::io_uring_prep_fsync(sqe, piece.fd, 0);
  }
}

class KernelRing : public FileRing {
 public:
  KernelRing(const FileRingOptions& options)
      : depth_(options.depth), buffers_(&ring_, options.slots, options.registration) {}
  ~KernelRing() override {
    if (made_) ::io_uring_queue_exit(&ring_);
  }

  absl::Status Make() {
    // Room for every piece and for as many cancels: neither queue can ever be full.
    if (absl::Status bad = SetUpRing(ring_, 2 * depth_); !bad.ok()) return bad;
    made_ = true;
    return buffers_.MakeTable();
  }

  absl::Status Register(uint32_t slot, void* address, Bytes bytes) override {
    return buffers_.Register(slot, address, bytes);
  }
  void Unregister(uint32_t slot) override { buffers_.Unregister(slot); }
  bool Registered(uint32_t slot) const override { return buffers_.Registered(slot); }
  std::string RegistrationText() const override { return buffers_.Text(); }

  uint32_t Room() const override { return depth_ - in_flight_; }
  uint32_t in_flight() const override { return in_flight_; }
  int fd() const override { return ring_.ring_fd; }

  bool Post(const FilePiece& piece) override {
    const bool fixed = piece.kind != FilePiece::Kind::kFsync && buffers_.Holds(piece.slot, piece.address, piece.length);
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    Prepare(sqe, piece, fixed);
    ::io_uring_sqe_set_data64(sqe, piece.tag);
    ++in_flight_;
    return fixed;
  }

  void Cancel(uint64_t tag) override {
    if (cancels_ == depth_) {
      if (std::count(cancels_waiting_.begin(), cancels_waiting_.end(), tag) == 0) cancels_waiting_.push_back(tag);
    } else {
      PostCancel(tag);
    }
  }

  void Submit() override {
    while (::io_uring_sq_ready(&ring_) > 0) {
      const int result = ::io_uring_submit(&ring_);
      if (result >= 0 || result == -EINTR) continue;
      // A completion of what the kernel has will wake the lane, which submits again; else there is none to wait for.
      if (in_flight_ + cancels_ > ::io_uring_sq_ready(&ring_)) return;
      WaitForKernel(result);
    }
  }

  size_t Reap(absl::Span<FileResult> out) override {
    size_t count = 0;
    unsigned seen = 0, head = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      if (cqe->user_data == kCancelTag) {
        --cancels_;
      } else {
        if (count == out.size()) break;
        out[count++] = {cqe->user_data, cqe->res};
        // The tag may be another piece's soon, and that one is nobody's to cancel.
        if (!cancels_waiting_.empty()) std::erase(cancels_waiting_, cqe->user_data);
      }
      ++seen;
    }
    ::io_uring_cq_advance(&ring_, seen);
    in_flight_ -= static_cast<uint32_t>(count);
    for (; !cancels_waiting_.empty() && cancels_ < depth_; cancels_waiting_.pop_front()) {
      PostCancel(cancels_waiting_.front());
    }
    return count;
  }

 private:
  void PostCancel(uint64_t tag) {
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_cancel64(sqe, tag, 0);
    ::io_uring_sqe_set_data64(sqe, kCancelTag);
    ++cancels_;
  }

  // The kernel has no memory to begin even one request, and tells nobody when it has some again.
  static void WaitForKernel(int result) {
    if (result != -EAGAIN && result != -EBUSY) {
      LogError("io_uring refuses submissions; transfers wait", {{"error", std::to_string(-result)}});
    }
    const timespec pause = {.tv_sec = 0, .tv_nsec = 1000000};
    ::nanosleep(&pause, nullptr);
  }

  const uint32_t depth_;
  io_uring ring_ = {};
  bool made_ = false;
  FixedBuffers buffers_;
  uint32_t in_flight_ = 0;  // pieces posted and not reaped
  uint32_t cancels_ = 0;    // posted and not answered
  std::deque<uint64_t> cancels_waiting_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FileRing>> FileRing::Create(const FileRingOptions& options) {
  if (options.depth == 0 || options.depth > kMostDepth) {
    return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadField,
                         absl::StrCat("depth of a file ring: 1 to ", kMostDepth, ", not ", options.depth),
                         {{"field", "depth"}});
  }
  auto ring = std::make_unique<KernelRing>(options);
  if (absl::Status bad = ring->Make(); !bad.ok()) return bad;
  return ring;
}

}  // namespace ubd
