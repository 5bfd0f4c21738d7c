// The threads that free old backings and make new ones, so that neither a grant nor the reclaimer waits for it: each
// pool's reserve is kept full, and a block without backing comes before the reserve. Where there is no memory for a new
// one, or a device refuses it, it is tried again when something was freed, or after a pause that grows to 5 s. With
// nothing to do the threads sleep without a timer. They also let go of clients' own memory.
//
// Thread-safe. The sink is called with no lock held.
#ifndef UBD_MEMORY_PROVISIONER_H_
#define UBD_MEMORY_PROVISIONER_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "daemon/core/memory.h"
#include "daemon/memory/own_memory.h"
#include "daemon/memory/pool_memory.h"
#include "daemon/memory/registry.h"
#include "proto/wire/mutex.h"

namespace ubd {

class Provisioner {
 public:
  // New backings are registered with `registry`.
  Provisioner(std::vector<PoolMemory*> pools, Registry& registry, OwnMemory& own);
  ~Provisioner();

  void Start(ReclaimSink* sink);
  void Stop();
  // There may be something to do.
  void Poke();

 private:
  void Run();
  // Does one job of any pool; false when there was none, with the time at which one may be retried.
  bool DoOne(MonoTime* retry);
  void Free(PoolMemory& pool, FreeJob job);
  void Make(PoolMemory& pool);

  const std::vector<PoolMemory*> pools_;
  Registry& registry_;
  OwnMemory& own_;
  ReclaimSink* sink_ = nullptr;
  std::vector<std::thread> threads_;

  ub::Mutex mu_;
  ub::CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t pokes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace ubd

#endif  // UBD_MEMORY_PROVISIONER_H_
