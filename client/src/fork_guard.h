// Tells a forked child apart from the process that made an object, for the price of one load. The mark is a page that
// the kernel zeroes in every child (MADV_WIPEONFORK), so it also holds for children made by a bare clone(2).
// Thread-safe.
//
// A child shares nothing usable with its parent's Client: the memory is not mapped there, gRPC's threads do not exist
// there, and the session is the parent's. So calls return FAILED_PRECONDITION/FORKED, and destructors leave everything
// as it is, on purpose.
#ifndef UB_SRC_FORK_GUARD_H_
#define UB_SRC_FORK_GUARD_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace ub {

class ForkGuard {
 public:
  ForkGuard();
  // True in any child, grandchild and so on of the process that made this guard.
  bool forked() const { return mark_->load(std::memory_order_relaxed) != epoch_; }
  // OK, or FAILED_PRECONDITION/FORKED.
  absl::Status Check() const;

 private:
  const std::atomic<uint64_t>* mark_;
  uint64_t epoch_;
};

// Differs between a process and its forked children.
uint64_t ForkEpoch();

// A descriptor that fork handlers close in the child (close(2) only), so that a child does not keep its parent's
// session open. At most 64 are kept; beyond that the child merely keeps the descriptor. Forget it before closing it.
void CloseInChild(int fd);
void ForgetInChild(int fd);

}  // namespace ub

#endif  // UB_SRC_FORK_GUARD_H_
