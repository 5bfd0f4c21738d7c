#include "tests/unit/memory/fake_registrar.h"

#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace ubd::testing {

bool IsMapped(const void* address, Bytes bytes) {
  std::vector<unsigned char> pages(bytes.count() / static_cast<uint64_t>(::getpagesize()));
  return ::mincore(const_cast<void*>(address), bytes.count(), pages.data()) == 0;
}

absl::Status FakeRegistrar::Register(uint32_t slot, void* address, Bytes bytes) {
  ub::MutexLock lock(&mu_);
  if (passes_ > 0) {
    --passes_;
  } else if (fail_ > 0) {
    --fail_;
    ++refused_;
    return absl::UnavailableError("the device refuses");
  }
  if (!IsMapped(address, bytes)) faults_.push_back(absl::StrCat("slot ", slot, " was given no memory"));
  for (const auto& [other, given] : now_) {
    if (given.address == address) faults_.push_back(absl::StrCat("slot ", slot, " has the memory of ", other));
  }
  if (!now_.emplace(slot, Given{address, bytes}).second) faults_.push_back(absl::StrCat("slot ", slot, " twice"));
  ++registered_;
  return absl::OkStatus();
}

void FakeRegistrar::Unregister(uint32_t slot) {
  ub::MutexLock lock(&mu_);
  auto found = now_.find(slot);
  if (found == now_.end()) {
    faults_.push_back(absl::StrCat("slot ", slot, " was not there"));
    return;
  }
  if (!IsMapped(found->second.address, found->second.bytes)) {
    faults_.push_back(absl::StrCat("slot ", slot, " was freed before it was unregistered"));
  }
  now_.erase(found);
}

void FakeRegistrar::Fail(int count, int passes) {
  ub::MutexLock lock(&mu_);
  fail_ = count;
  passes_ = passes;
}

std::map<uint32_t, FakeRegistrar::Given> FakeRegistrar::Now() const {
  ub::MutexLock lock(&mu_);
  return now_;
}

bool FakeRegistrar::Has(const MappedBlock& block) const {
  ub::MutexLock lock(&mu_);
  auto found = now_.find(block.slot);
  return found != now_.end() && found->second.address == block.address && found->second.bytes == block.bytes;
}

int FakeRegistrar::registered() const {
  ub::MutexLock lock(&mu_);
  return registered_;
}

int FakeRegistrar::refused() const {
  ub::MutexLock lock(&mu_);
  return refused_;
}

std::vector<std::string> FakeRegistrar::Faults() const {
  ub::MutexLock lock(&mu_);
  return faults_;
}

}  // namespace ubd::testing
