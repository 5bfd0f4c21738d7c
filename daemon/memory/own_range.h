// A range of a client's own memfd, mapped into this process. The descriptor comes from the client: it may be anything,
// and the client goes on using the memory as it likes.
#ifndef UBD_MEMORY_OWN_RANGE_H_
#define UBD_MEMORY_OWN_RANGE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/memory/registry.h"
#include "proto/wire/unique_fd.h"
#include "proto/wire/units.h"

namespace ubd {

// Is it a file of a memory file system? Answered by the kernel alone, whatever `fd` is; every other question about a
// descriptor could go to a FUSE server that never answers.
bool IsMemoryFile(int fd);

class OwnRange {
 public:
  // Checks all that Memory::AddOwn says, and maps and populates the range: writable if the descriptor is, since devices
  // want that. No descriptor is kept: the mapping holds the memory. REQUIRES: IsMemoryFile(fd).
  static absl::StatusOr<std::unique_ptr<OwnRange>> Map(ub::UniqueFd fd, Bytes offset, Bytes bytes, ub::Access access);
  ~OwnRange();
  OwnRange(const OwnRange&) = delete;
  OwnRange& operator=(const OwnRange&) = delete;

  absl::Status Register(Registry& registry);
  // Never read or write through it: the client may have punched the page away.
  void* address() const { return address_; }
  Bytes bytes() const { return bytes_; }
  uint32_t slot() const { return registration_.slot(); }

 private:
  OwnRange(void* address, Bytes bytes) : address_(address), bytes_(bytes) {}

  void* address_;
  Bytes bytes_;
  Registration registration_;
};

}  // namespace ubd

#endif  // UBD_MEMORY_OWN_RANGE_H_
