// "Does anybody but the daemon hold this memory?", answered by the kernel in about 2 us: a write lease (fcntl
// F_SETLEASE, F_WRLCK) is granted only while no other open file description of the inode exists. It sees descriptors,
// bare mappings, forked children's mappings and descriptors in flight in a socket. It is blind to dups of the daemon's
// own description, which is why every holder gets a description of its own, and it always fails on the description that
// memfd_create returned, which is why that one is closed.
//
// The lease lock is let go at once: it would outlive the process. Callers hold the block's lock, so that the daemon's
// own reopen never meets it.
#ifndef UBD_MEMORY_SOLE_HOLDER_H_
#define UBD_MEMORY_SOLE_HOLDER_H_

#include "absl/status/status.h"

namespace ubd {

// A foreign open during the 2 us sends SIGIO, which kills by default. Process-wide; idempotent.
void IgnoreLeaseSignals();

// True when `fd` is the only open file description of its inode. Any failure of the test itself counts as "no".
bool IsSoleHolder(int fd);

// Shows on `fd` (a memfd's reopened, read-write description that nobody else holds) that the test tells the truth on
// this kernel: it passes alone, and fails for a second read-write and a read-only description and for a mapping whose
// descriptor is closed. The status says what was wrong.
absl::Status ProbeSoleHolderTest(int fd, size_t map_bytes);

}  // namespace ubd

#endif  // UBD_MEMORY_SOLE_HOLDER_H_
