// One backing: a memfd that is sealed against shrink, grow and further seals, its inode mode 0600, with the daemon's
// own description and a mapping of it, the witness, which is also what devices are registered with. It is writable
// because io_uring and verbs register no other, and one mapping instead of two because page tables of a large pool are
// large. What goes through it may fault in a page anew, after which it proves less: see Memory::Touched. The
// description that memfd_create returned is closed: the sole-holder test is blind on it.
//
// Made in two steps, because the first takes the process's memory-map lock for writing and the second holds it for
// reading for long: at boot all are made first and then populated in parallel. Pages are allocated by fallocate and
// mapped by MADV_POPULATE_READ; so lack of memory is an error here and never a SIGBUS later. Destruction unregisters,
// unmaps and closes; other holders keep their pages.
//
// Not thread-safe: the owner (a block under its lock, or a store) sees to it.
#ifndef UBD_MEMORY_MEMFD_BACKING_H_
#define UBD_MEMORY_MEMFD_BACKING_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/memory/registry.h"
#include "proto/wire/unique_fd.h"
#include "proto/wire/units.h"

namespace ubd {

using ub::Access;
using ub::Bytes;

struct BackingSpec {
  std::string pool;
  Bytes bytes;  // a multiple of page_size
  Bytes page_size;
  std::optional<int> numa_node;
  bool bind_must_work = true;   // false where there is one node only, so that a refused mbind changes nothing
  bool lock = false;            // mlock small pages
  bool lock_must_work = false;  // else a refusal leaves them unlocked
};

// A new description of `fd`'s inode, close-on-exec. O_NONBLOCK: were a lease lock on it, open would fail at once
// instead of waiting 45 s. RESOURCE_EXHAUSTED/DAEMON_FD_LIMIT when no descriptor is left.
absl::StatusOr<ub::UniqueFd> ReopenMemfd(int fd, Access access);

class MemfdBacking {
 public:
  static absl::StatusOr<std::unique_ptr<MemfdBacking>> Create(const BackingSpec& spec);
  ~MemfdBacking();
  MemfdBacking(const MemfdBacking&) = delete;
  MemfdBacking& operator=(const MemfdBacking&) = delete;

  // Allocates, zeroes and maps every page. Once.
  absl::Status Populate();
  // Gets a slot, and registers it with every device there is. Once, after Populate.
  absl::Status Register(Registry& registry);
  Registration& registration() { return registration_; }
  uint32_t slot() const { return registration_.slot(); }

  int fd() const { return fd_.get(); }
  // Never read or write through it: a client may have punched the page away.
  void* witness() const { return witness_; }
  Bytes bytes() const { return bytes_; }
  Bytes page_size() const { return page_size_; }
  // The kernel neither swaps nor drops these pages by itself, so that one that is gone was taken away by a holder.
  bool pages_stay() const { return locked_ || huge_; }

 private:
  MemfdBacking() = default;

  ub::UniqueFd fd_;
  void* witness_ = nullptr;
  Registration registration_;
  Bytes bytes_;
  Bytes page_size_;
  std::string pool_;
  bool huge_ = false;
  bool locked_ = false;
};

}  // namespace ubd

#endif  // UBD_MEMORY_MEMFD_BACKING_H_
