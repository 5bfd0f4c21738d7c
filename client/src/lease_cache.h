// Released leases, kept mapped. Taking one back is a compare-and-swap on its word: no call, no system call, no page
// fault. Thread-safe.
//
// The newest fit is taken first (its lines are warmest); a fit is a lease of the same pool with exactly as many blocks.
// The daemon may recall any cached lease at any time; that is found out on its event, or when the lease is about to be
// taken, and such leases are handed out in `dead`, to be destroyed by the caller, outside the cache's lock (unmapping
// takes time).
#ifndef UB_SRC_LEASE_CACHE_H_
#define UB_SRC_LEASE_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client/src/lease_impl.h"
#include "client/src/word_page.h"
#include "proto/wire/mutex.h"

namespace ub {

class LeaseCache {
 public:
  // `page` must outlive the cache and everything in it.
  LeaseCache(const WordPage* page, Bytes limit);

  // A lease of `bytes` rounded up to blocks, BUSY again; null when there is none. `pool` empty: the default pool, once
  // it is known.
  std::unique_ptr<LeaseImpl> Take(const std::string& pool, Bytes bytes, LeaseList* dead);

  enum class Kept { kYes, kGiveBack, kEnded };
  // Takes a cacheable lease. kYes: `lease` is now empty. kGiveBack: somebody waits for memory, or it is too large;
  // release it. kEnded: the daemon has ended it meanwhile. Older leases that had to make room are in `give_back` (BUSY)
  // and `dead`.
  Kept Put(std::unique_ptr<LeaseImpl>& lease, LeaseList* give_back, LeaseList* dead);

  // After an event: the lease, if it is here.
  std::unique_ptr<LeaseImpl> Remove(LeaseId lease);
  // After missed events.
  void RemoveRecalled(LeaseList* dead);
  // Empties the cache: what the daemon must be told of is in `give_back` (BUSY).
  void TakeAll(LeaseList* give_back, LeaseList* dead);

  void SetDefaultPool(const std::string& name);
  Bytes cached_bytes() const;

 private:
  void Extract(size_t index, LeaseList* give_back, LeaseList* dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<LeaseImpl> Cut(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const WordPage* const page_;
  const Bytes limit_;
  mutable Mutex mu_;
  LeaseList leases_ ABSL_GUARDED_BY(mu_);  // oldest first; never reallocated
  Bytes bytes_ ABSL_GUARDED_BY(mu_);
  std::string default_pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ub

#endif  // UB_SRC_LEASE_CACHE_H_
