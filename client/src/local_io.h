// Transfers of files that the daemon does no I/O on: libub reads and writes them in the calling thread, into or out of
// the lease itself, and attests that. Thread-safe: no state.
#ifndef UB_SRC_LOCAL_IO_H_
#define UB_SRC_LOCAL_IO_H_

#include <cstddef>
#include <cstdint>

#include "client/src/file_impl.h"
#include "proto/wire/queue_layout.h"

namespace ub {

// The lease as mapped here.
struct LocalMemory {
  std::byte* data = nullptr;
  uint64_t size = 0;
  bool writable = false;
  bool ended = false;
};

// Does what the daemon would do with READ, WRITE and FSYNC, checks included, under `policy` (never kDefault). Takes as
// long as the file system does.
wire::CompletionEntry RunLocally(const wire::SubmitEntry& entry, const FileImpl& file, const LocalMemory& memory,
                                 wire::PathPolicy policy);

}  // namespace ub

#endif  // UB_SRC_LOCAL_IO_H_
