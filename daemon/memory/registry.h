// All memory that devices may work on, by slot: a small number that names a backing for every device from its making to
// its end, and is then given to another. And the devices: each backing is registered with all of them before anybody
// uses it, and taken from them before it is freed.
//
// Thread-safe; devices are called with no lock held.
#ifndef UBD_MEMORY_REGISTRY_H_
#define UBD_MEMORY_REGISTRY_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/memory/memory.h"
#include "proto/wire/mutex.h"

namespace ubd {

class Registry;

// A backing's slot. Takes it from all devices and gives the slot back when destroyed. Move-only; not thread-safe. Must
// not outlive its Registry.
class Registration {
 public:
  Registration() = default;
  Registration(Registration&& other) noexcept
      : registry_(std::exchange(other.registry_, nullptr)), slot_(other.slot_) {}
  Registration& operator=(Registration&& other) noexcept;
  ~Registration();

  // 0 where there is none.
  uint32_t slot() const { return slot_; }
  // Nothing is in flight on it any more, and nothing will be: takes it from all devices at once.
  void Withdraw();
  // Nothing is in flight on it: registers the pages that are mapped now. On an error it is with no device.
  absl::Status Renew();

 private:
  friend class Registry;
  Registration(Registry* registry, uint32_t slot) : registry_(registry), slot_(slot) {}
  Registry* registry_ = nullptr;
  uint32_t slot_ = 0;
};

class Registry {
 public:
  explicit Registry(uint32_t slots);
  uint32_t slots() const { return all_; }

  // A free slot for this memory, which is mapped and populated, and which every device has then taken. On an error none
  // has.
  absl::StatusOr<Registration> Add(void* address, Bytes bytes);
  // Registers all that there is with one device more, in parallel; on an error nothing. Not at the same time as Add.
  absl::Status AddDevice(Registrar* device);
  // Takes everything from every device, and forgets them. Not at the same time as Add.
  void RemoveDevices();

 private:
  friend class Registration;
  struct Entry {
    void* address = nullptr;  // null: free
    Bytes bytes;
    bool registered = false;
  };

  absl::Status Register(uint32_t slot);
  void Unregister(uint32_t slot);
  void Free(uint32_t slot);

  const uint32_t all_;
  ub::Mutex mu_;
  std::vector<Registrar*> devices_ ABSL_GUARDED_BY(mu_);
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_MEMORY_REGISTRY_H_
