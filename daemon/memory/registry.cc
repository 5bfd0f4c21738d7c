#include "daemon/memory/registry.h"

#include "absl/strings/str_cat.h"
#include "daemon/memory/parallel.h"

namespace ubd {

Registration& Registration::operator=(Registration&& other) noexcept {
  if (this == &other) return *this;
  if (registry_ != nullptr) registry_->Free(slot_);
  registry_ = std::exchange(other.registry_, nullptr);
  slot_ = other.slot_;
  return *this;
}

Registration::~Registration() {
  if (registry_ != nullptr) registry_->Free(slot_);
}

void Registration::Withdraw() {
  if (registry_ != nullptr) registry_->Unregister(slot_);
}

absl::Status Registration::Renew() {
  if (registry_ == nullptr) return absl::OkStatus();
  registry_->Unregister(slot_);
  return registry_->Register(slot_);
}

Registry::Registry(uint32_t slots) : all_(slots), entries_(slots) {
  free_.reserve(slots);
  for (uint32_t slot = slots; slot-- > 0;) free_.push_back(slot);  // the lowest is taken first
}

absl::StatusOr<Registration> Registry::Add(void* address, Bytes bytes) {
  uint32_t slot = 0;
  {
    ub::MutexLock lock(&mu_);
    if (free_.empty()) return absl::ResourceExhaustedError(absl::StrCat("all ", all_, " slots are in use"));
    slot = free_.back();
    free_.pop_back();
    entries_[slot] = {address, bytes, false};
  }
  Registration made(this, slot);
  if (absl::Status status = Register(slot); !status.ok()) return status;
  return made;
}

absl::Status Registry::Register(uint32_t slot) {
  std::vector<Registrar*> devices;
  Entry entry;
  {
    ub::MutexLock lock(&mu_);
    devices = devices_;
    entry = entries_[slot];
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    absl::Status status = devices[i]->Register(slot, entry.address, entry.bytes);
    if (status.ok()) continue;
    while (i-- > 0) devices[i]->Unregister(slot);
    return status;
  }
  ub::MutexLock lock(&mu_);
  entries_[slot].registered = true;
  return absl::OkStatus();
}

void Registry::Unregister(uint32_t slot) {
  std::vector<Registrar*> devices;
  {
    ub::MutexLock lock(&mu_);
    if (!std::exchange(entries_[slot].registered, false)) return;
    devices = devices_;
  }
  for (Registrar* device : devices) device->Unregister(slot);
}

void Registry::Free(uint32_t slot) {
  Unregister(slot);
  ub::MutexLock lock(&mu_);
  entries_[slot] = Entry();
  free_.push_back(slot);
}

absl::Status Registry::AddDevice(Registrar* device) {
  std::vector<uint32_t> slots;
  std::vector<Entry> entries;
  {
    ub::MutexLock lock(&mu_);
    entries = entries_;
  }
  for (uint32_t slot = 0; slot < entries.size(); ++slot) {
    if (entries[slot].registered) slots.push_back(slot);
  }
  std::vector<char> done(slots.size(), 0);
  absl::Status status = ForEachInParallel(slots.size(), [&](size_t i) {
    absl::Status registered = device->Register(slots[i], entries[slots[i]].address, entries[slots[i]].bytes);
    done[i] = registered.ok() ? 1 : 0;
    return registered;
  });
  if (status.ok()) {
    ub::MutexLock lock(&mu_);
    devices_.push_back(device);
    return absl::OkStatus();
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (done[i] != 0) device->Unregister(slots[i]);
  }
  return status;
}

void Registry::RemoveDevices() {
  std::vector<Registrar*> devices;
  std::vector<uint32_t> slots;
  {
    ub::MutexLock lock(&mu_);
    devices = std::exchange(devices_, {});
    for (uint32_t slot = 0; slot < entries_.size(); ++slot) {
      if (entries_[slot].registered) slots.push_back(slot);
    }
  }
  for (Registrar* device : devices) {
    for (uint32_t slot : slots) device->Unregister(slot);
  }
}

}  // namespace ubd
