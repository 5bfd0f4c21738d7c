// Reads a file through a queue into leased memory, with so many reads in flight, and measures it. The bytes are thrown
// away. Not thread-safe.
#ifndef UB_UBCTL_LOAD_QUEUE_LOAD_H_
#define UB_UBCTL_LOAD_QUEUE_LOAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ubctl/load/cpu_time.h"
#include "client/ubctl/load/result.h"
#include "ub/client.h"
#include "ub/file.h"
#include "ub/queue.h"

namespace ub::ctl {

struct LoadPlan {
  Bytes chunk = MiB(1);
  uint32_t depth = 16;
  PathPolicy policy = PathPolicy::kDefault;
  bool random = false;  // chunks in random order, else one after the other, again from the start at the end
  uint64_t seed = 1;
  Bytes bytes;                                        // how much in all; 0: until the time is over
  absl::Duration at_most = absl::InfiniteDuration();  // then no new reads
};

// The entries that a queue needs for `depth` transfers in flight.
uint32_t QueueEntries(uint32_t depth);

class QueueLoad {
 public:
  // `fd` is read, `memory` is what is read into: at least one chunk; with less than depth chunks, transfers share it.
  // Everything is the caller's and must outlive this.
  QueueLoad(Client& client, const File& file, const Lease& memory, const CpuMeter& meter, absl::Duration patience)
      : client_(client), file_(file), memory_(memory), meter_(meter), patience_(patience) {}

  // A transfer that fails, or is not whole, is an error: FAILED_PRECONDITION/PATH_UNAVAILABLE says why direct-only
  // cannot be. FAILED_PRECONDITION when the file or the memory is smaller than a chunk.
  absl::StatusOr<LoadResult> Run(const LoadPlan& plan);

 private:
  Client& client_;
  const File& file_;
  const Lease& memory_;
  const CpuMeter& meter_;
  absl::Duration patience_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_QUEUE_LOAD_H_
