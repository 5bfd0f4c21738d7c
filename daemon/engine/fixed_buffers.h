// The ring's table of fixed buffers: one place per backing, filled and emptied while transfers run. What is refused is
// remembered with its cause, said once, and is an error only where registration is required. Thread-safe; the kernel's
// own lock makes the calls safe beside a thread that submits. Calls for one slot must not overlap.
#ifndef UBD_ENGINE_FIXED_BUFFERS_H_
#define UBD_ENGINE_FIXED_BUFFERS_H_

#include <liburing.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/memory/memory.h"
#include "proto/wire/mutex.h"

namespace ubd {

class FixedBuffers {
 public:
  // The kernel's limits.
  static constexpr uint32_t kMostSlots = 16384;
  static constexpr Bytes kLargest = ub::GiB(1);

  // `ring` must outlive it.
  FixedBuffers(io_uring* ring, uint32_t slots, Demand demand);
  // An error only where registration is required.
  absl::Status MakeTable();

  absl::Status Register(uint32_t slot, void* address, Bytes bytes);
  void Unregister(uint32_t slot);
  bool Registered(uint32_t slot) const;
  // [address, address + length) lies within the registered memory of this slot.
  bool Holds(uint32_t slot, const void* address, uint64_t length) const;
  std::string Text() const;

 private:
  struct Place {
    const void* address = nullptr;  // null: not registered
    Bytes bytes;
    bool offered = false;
  };
  absl::Status Refuse(absl::Status why);
  // What forbids it without asking the kernel.
  absl::Status CheckLimits(uint32_t slot, Bytes bytes) const;

  io_uring* const ring_;
  const Demand demand_;
  mutable ub::Mutex mu_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mu_);
  uint32_t table_ ABSL_GUARDED_BY(mu_) = 0;  // places that the kernel has
  uint32_t offered_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t registered_ ABSL_GUARDED_BY(mu_) = 0;
  std::string refusal_ ABSL_GUARDED_BY(mu_);  // the first one's text
  // Of what memlock refused; not asked for again, for a refusal costs as much as pinning, until something is let go.
  Bytes refused_bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_ENGINE_FIXED_BUFFERS_H_
