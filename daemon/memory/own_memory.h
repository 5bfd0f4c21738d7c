// The ranges of clients' own memory that are registered now, by block. Thread-safe.
#ifndef UBD_MEMORY_OWN_MEMORY_H_
#define UBD_MEMORY_OWN_MEMORY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/memory/closer.h"
#include "daemon/memory/memory.h"
#include "daemon/memory/own_range.h"
#include "daemon/memory/registry.h"
#include "proto/wire/mutex.h"

namespace ubd {

class OwnMemory {
 public:
  // Blocks are numbered from `first`; at most `most` ranges exist at a time.
  OwnMemory(Registry& registry, BlockId first, uint32_t most)
      : registry_(registry), most_(most), next_(first.value()) {}
  // Before any other thread uses it. `poke` is called, without a lock, when FreeOne has something to do.
  void OnWork(std::function<void()> poke) { poke_ = std::move(poke); }

  // Never waits for anybody but the kernel, whatever `fd` is.
  absl::StatusOr<BlockId> Add(ub::UniqueFd fd, Bytes offset, Bytes bytes, Access access);
  MappedBlock Locate(BlockId block) const;
  // Returns at once; the memory goes with FreeOne.
  void Drop(BlockId block);
  // Unregisters and unmaps one that was dropped. False: there is none.
  bool FreeOne();

 private:
  absl::Status TakePlace();
  void GiveUpPlace();

  Registry& registry_;
  const uint32_t most_;
  std::function<void()> poke_ = [] {};
  Closer closer_;
  mutable ub::Mutex mu_;
  uint32_t count_ ABSL_GUARDED_BY(mu_) = 0;  // being added and dropped included
  uint64_t next_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<BlockId, std::unique_ptr<OwnRange>> ranges_ ABSL_GUARDED_BY(mu_);
  std::deque<std::unique_ptr<OwnRange>> dropped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_MEMORY_OWN_MEMORY_H_
