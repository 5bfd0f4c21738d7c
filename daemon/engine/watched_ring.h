// Stands between the memory layer and a ring, and knows which backings there are, so that somebody can say whether all
// of them are registered. Thread-safe.
#ifndef UBD_ENGINE_WATCHED_RING_H_
#define UBD_ENGINE_WATCHED_RING_H_

#include "absl/container/flat_hash_set.h"
#include "daemon/engine/file_ring.h"
#include "proto/wire/mutex.h"

namespace ubd {

class WatchedRing : public Registrar {
 public:
  // `ring` must outlive this.
  explicit WatchedRing(FileRing& ring) : ring_(ring) {}

  absl::Status Register(uint32_t slot, void* address, Bytes bytes) override {
    absl::Status registered = ring_.Register(slot, address, bytes);
    if (!registered.ok()) return registered;
    ub::MutexLock lock(&mu_);
    slots_.insert(slot);
    return registered;
  }
  void Unregister(uint32_t slot) override {
    {
      ub::MutexLock lock(&mu_);
      slots_.erase(slot);
    }
    ring_.Unregister(slot);
  }
  // False, too, where there is nothing.
  bool All() const {
    ub::MutexLock lock(&mu_);
    for (uint32_t slot : slots_) {
      if (!ring_.Registered(slot)) return false;
    }
    return !slots_.empty();
  }
  std::string Text() const { return ring_.RegistrationText(); }

 private:
  FileRing& ring_;
  mutable ub::Mutex mu_;
  absl::flat_hash_set<uint32_t> slots_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_ENGINE_WATCHED_RING_H_
