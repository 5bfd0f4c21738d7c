// Looks at the daemon's own read-only mapping of a block: is every page that was prefaulted still there? A client can
// punch a hole even into a sealed memfd; a page that it touches afterwards is another one, and the old one, which
// devices were told about, belongs to nobody. The page tables of the daemon's mapping show such a hole for ever,
// because the daemon never touches that mapping after the prefault.
//
// Thread-safe. The witness is never dereferenced, so it can raise no SIGBUS.
#ifndef UBD_MEMORY_WITNESS_H_
#define UBD_MEMORY_WITNESS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

struct WitnessScan {
  uint64_t pages = 0;
  uint64_t absent = 0;      // neither present nor on its way to another place in memory
  uint64_t moving = 0;      // being migrated at this moment, or swapped: proves nothing
  size_t first_absent = 0;  // offset in bytes; valid when absent > 0
  bool complete() const { return pages > 0 && absent == 0 && moving == 0; }
};

// /proc/self/pagemap, opened once.
class Pagemap {
 public:
  static absl::StatusOr<Pagemap> Open();
  // One entry per `page_size` bytes.
  absl::StatusOr<WitnessScan> Scan(const void* address, size_t bytes, size_t page_size) const;

 private:
  explicit Pagemap(ub::UniqueFd fd) : fd_(std::move(fd)) {}
  ub::UniqueFd fd_;
};

// Shows on a scratch page that a scan sees a present page and a punched one.
absl::Status ProbeWitness(const Pagemap& pagemap);

}  // namespace ubd

#endif  // UBD_MEMORY_WITNESS_H_
