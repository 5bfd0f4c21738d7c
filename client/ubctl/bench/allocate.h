// What a program without ubd does for 64 MiB of transfer memory: make a memfd, populate it, pin it by io_uring
// registration.
#ifndef UB_UBCTL_BENCH_ALLOCATE_H_
#define UB_UBCTL_BENCH_ALLOCATE_H_

#include <liburing.h>

#include <memory>

#include "absl/status/statusor.h"
#include "ub/units.h"

namespace ub::ctl {

enum class AllocatePages { k4KiB, k2MiB };

// Keeps the ring, which is not part of the timing. Not thread-safe.
class Allocator {
 public:
  static absl::StatusOr<std::unique_ptr<Allocator>> Create();
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Nanoseconds from nothing to pinned. Taking down again is not timed. An error says what the machine does not allow.
  absl::StatusOr<uint64_t> Time(Bytes bytes, AllocatePages pages);

 private:
  Allocator() = default;
  io_uring ring_ = {};
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_ALLOCATE_H_
