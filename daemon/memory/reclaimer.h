// The thread that makes blocks fit for another lease: sole-holder test, then witness, else a clean backing in place of
// the old one. A block whose order carries grace is tested again, with growing pauses, until the grace is over. Old
// backings that somebody still holds are tested again after 10 ms, and with growing pauses up to 5 s for as long as
// there are any. With nothing to do it sleeps without a timer.
//
// Thread-safe. Order may be called before Start, and under the Broker's lock: it only queues. The sink is called with
// no lock held.
#ifndef UBD_MEMORY_RECLAIMER_H_
#define UBD_MEMORY_RECLAIMER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "daemon/core/clock.h"
#include "daemon/core/memory.h"
#include "daemon/memory/pool_memory.h"
#include "daemon/memory/witness.h"
#include "proto/wire/mutex.h"

namespace ubd {

class Reclaimer {
 public:
  // The pool of a block; never null for a block that was ordered.
  using PoolOf = std::function<PoolMemory*(BlockId)>;

  // `pagemap` none: the kernel's tests cannot be trusted; then every order gets fresh backing, and the old one is let
  // go at once, since nobody could tell when it is free.
  Reclaimer(std::vector<PoolMemory*> pools, PoolOf pool_of, std::optional<Pagemap> pagemap);
  ~Reclaimer();

  void Order(BlockId block, ReclaimOrder order);
  void Start(ReclaimSink* sink);
  void Stop();

 private:
  struct Task {
    BlockId block;
    ReclaimOrder order;
    MonoTime give_up;      // end of the grace
    absl::Duration pause;  // before the next test
  };

  void Run();
  // The next task that is due; none when stopped. Sweeps retired backings when that is due.
  std::optional<Task> NextTask();
  void Handle(Task task);
  void Recycle(Task task, bool held);
  void Sweep();
  MonoTime NextWakeUp() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::vector<PoolMemory*> pools_;
  const PoolOf pool_of_;
  const std::optional<Pagemap> pagemap_;
  ReclaimSink* sink_ = nullptr;
  std::thread thread_;

  ub::Mutex mu_;
  ub::CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Task> new_ ABSL_GUARDED_BY(mu_);
  std::multimap<absl::Duration, Task> later_ ABSL_GUARDED_BY(mu_);  // by due time
  MonoTime sweep_at_ ABSL_GUARDED_BY(mu_) = MonoTime::Never();
  absl::Duration sweep_pause_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_MEMORY_RECLAIMER_H_
