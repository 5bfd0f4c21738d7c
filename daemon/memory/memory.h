// All pools' memory behind one door: made and prefaulted at boot, handed out as descriptors, tested, recycled and
// retired in the background. The rule "may this backing serve the next lease?" lives here: sole holder (fcntl
// F_SETLEASE), then every page present in the read-only witness mapping, else fresh backing from a store of clean ones
// that a provisioner thread keeps full. Total backings, retired ones included, never exceed blocks + reserve of the
// pool: a uid that hoards old backings starves its own quota, then the reserve, never the machine.
//
// Thread-safe after Create. Reclaim may be called before Start; it is worked off then.
#ifndef UBD_MEMORY_MEMORY_H_
#define UBD_MEMORY_MEMORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/memory.h"
#include "daemon/core/requests.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

enum class Demand : uint8_t { kIfPossible, kRequired, kOff };

struct HostPoolConfig {
  PoolSpec spec;
  Bytes page_size;  // 0: auto (2 MiB huge pages if enough are free, else 4 KiB)
  std::optional<int> numa_node;
  uint32_t reserve_blocks = 1;
  Demand lock_pages = Demand::kIfPossible;
  bool allow_smaller = false;
  uint32_t min_blocks = 1;
};

// What a pool got, and why.
struct PoolFacts {
  PoolSpec spec;  // blocks: what there really is
  Bytes page_size;
  std::string page_reason;
  std::optional<int> numa_node;
  std::string locked;    // "yes", "no: why"
  std::string shrunk;    // empty, or why it is smaller than configured
  uint64_t reserve = 0;  // clean backings in store now
};

// Called while the pools are made: blocks ready of all. From several threads, one at a time.
using BootProgress = std::function<void(uint64_t done, uint64_t total)>;

class Memory : public BlockMemory {
 public:
  // Checks limits first (huge pages, cgroup and machine memory, memlock, fds), then makes and prefaults every block, in
  // parallel. On failure nothing is left behind; the error is RESOURCE_EXHAUSTED/POOL_DOES_NOT_FIT with pool, wanted,
  // free, node, page_size and the cure.
  static absl::StatusOr<std::unique_ptr<Memory>> Create(const std::vector<HostPoolConfig>& pools,
                                                        const BootProgress& progress);

  // Starts the background threads (reclaimer, provisioner). `sink` must outlive Stop.
  virtual void Start(ReclaimSink* sink) = 0;
  virtual void Stop() = 0;

  // A description of its own for one holder; read-only where asked. The caller has pinned the block's lease.
  virtual absl::StatusOr<ub::UniqueFd> OpenForHolder(BlockId block, Access access) = 0;

  virtual std::vector<PoolFacts> Facts() const = 0;
  // "sole-holder", or why the kernel's test cannot be trusted here, so that every reuse gets fresh backing.
  virtual std::string ReuseTest() const = 0;
};

}  // namespace ubd

#endif  // UBD_MEMORY_MEMORY_H_
