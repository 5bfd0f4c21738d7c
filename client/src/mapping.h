// The memory of one lease in this process: N blocks mapped one after another into one reserved range. Movable; unmaps
// when destroyed. Not thread-safe while blocks are being mapped.
//
// Nothing faults later and nothing raises SIGBUS later: a block is accepted only from a memfd of the right size that
// cannot shrink, and Populate reports missing memory as an error. Forked children do not inherit the range
// (MADV_DONTFORK).
#ifndef UB_SRC_MAPPING_H_
#define UB_SRC_MAPPING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/units.h"

namespace ub {

class Mapping {
 public:
  // Address space only, aligned to the page size. RESOURCE_EXHAUSTED/KERNEL_REFUSED when there is none;
  // INVALID_ARGUMENT/BAD_FIELD for sizes that cannot be (zero, no multiple of the page size, more than an address
  // space).
  static absl::StatusOr<Mapping> Reserve(Bytes block_bytes, uint64_t blocks, Bytes page_bytes, Access access);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Maps block `index` from `fd`, which stays the caller's and may be closed at once. Mapping an index again replaces
  // it. FAILED_PRECONDITION when the fd is not sealed against shrinking or has the wrong size.
  absl::Status MapBlock(uint32_t index, int fd);
  // Maps all of it from one range of a memfd of this process's own, whose size is at least offset + size(). `fd` stays
  // the caller's.
  absl::Status MapRange(int fd, Bytes offset);
  // After the last block: maps every page now.
  absl::Status Populate();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t block_bytes_ = 0;
  Access access_ = Access::kReadWrite;
};

// OK when `fd` is a memfd of exactly `bytes` bytes that nobody can shrink.
absl::Status CheckSealedMemfd(int fd, uint64_t bytes);

}  // namespace ub

#endif  // UB_SRC_MAPPING_H_
