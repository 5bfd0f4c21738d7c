// All pools' memory behind one door: made and prefaulted at boot, handed out as descriptors, tested, recycled and
// retired in the background. The rule "may this backing serve the next lease?" lives here: sole holder (fcntl
// F_SETLEASE), then every page present in the witness mapping, else fresh backing from a store of clean ones
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

// Where a block's memory lies in this process. `address` is for the kernel and for devices: never dereference it, a
// client may have punched the page away (copies: daemon/engine/safe_copy.h).
struct MappedBlock {
  void* address = nullptr;  // null: no such block, or it waits for fresh backing
  Bytes bytes;
  uint32_t slot = 0;  // of its backing: unique among all that exist, below Memory::Slots()
};

// A device (io_uring, later each NIC) with which every backing is registered before any block uses it, and from which
// it is taken before it is freed. Called from the memory layer's own threads, several at a time; may take long.
class Registrar {
 public:
  virtual ~Registrar() = default;
  // An error makes the backing unusable (it is freed and made again later; at boot the error ends the boot): return OK
  // where registration is only wished for.
  virtual absl::Status Register(uint32_t slot, void* address, Bytes bytes) = 0;
  virtual void Unregister(uint32_t slot) = 0;
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

  // Registers every backing that exists, in parallel, and from now on every new one. Before Start; `registrar` must
  // outlive Stop. The error of the first that failed.
  virtual absl::Status RegisterWith(Registrar* registrar) = 0;
  // Slots are numbered from 0 to this, exclusively: blocks, reserves and kMostOwn.
  virtual uint32_t Slots() const = 0;
  static constexpr uint32_t kMostOwn = 1024;  // ranges of clients' own memory
  // Stable from when a lease of the block is pinned until it is unpinned. Fast: one uncontended lock.
  virtual MappedBlock Locate(BlockId block) const = 0;

  // Said before anything but registered I/O goes to the block's address: copies by the CPU, staged or unregistered I/O.
  // It may fault in a page in place of one that the client has punched away, which devices still have; so the block is
  // registered anew before its next lease. The block's lease is pinned.
  virtual void Touched(BlockId) {}

  // A client's own memory: maps and registers [offset, offset + bytes) of `fd`. INVALID_ARGUMENT/BAD_MEMORY with
  // `field` and what it would have to be: a memfd (tmpfs or hugetlbfs), sealed against shrink and grow, range aligned
  // to its page size and within it, at most 1 GiB, every page allocated (SEEK_HOLE), opened for writing if `access`
  // says so. RESOURCE_EXHAUSTED when there are kMostOwn already. Ids come after the pools' and are never used twice.
  // The mapping is writable wherever the descriptor is. Not at the same time as RegisterWith or Stop.
  virtual absl::StatusOr<BlockId> AddOwn(ub::UniqueFd fd, Bytes offset, Bytes bytes, Access access) = 0;

  // Starts the background threads (reclaimer, provisioner). `sink` must outlive Stop, which also takes everything from
  // every registrar.
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
