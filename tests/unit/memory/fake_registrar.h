// A device that keeps count: what it has, and whether it was ever given, or left with, what must not be.
#ifndef UBD_TESTS_UNIT_MEMORY_FAKE_REGISTRAR_H_
#define UBD_TESTS_UNIT_MEMORY_FAKE_REGISTRAR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/memory/memory.h"
#include "proto/wire/mutex.h"

namespace ubd::testing {

class FakeRegistrar : public Registrar {
 public:
  struct Given {
    void* address = nullptr;
    Bytes bytes;
  };

  absl::Status Register(uint32_t slot, void* address, Bytes bytes) override;
  void Unregister(uint32_t slot) override;

  // After `passes` that succeed, the next `count` registrations fail.
  void Fail(int count, int passes = 0);
  std::map<uint32_t, Given> Now() const;
  size_t Size() const { return Now().size(); }
  bool Has(const MappedBlock& block) const;
  int registered() const;  // in all
  int refused() const;
  // Slots given twice, memory that was unmapped at either end of its registration.
  std::vector<std::string> Faults() const;

 private:
  mutable ub::Mutex mu_;
  std::map<uint32_t, Given> now_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> faults_ ABSL_GUARDED_BY(mu_);
  int passes_ ABSL_GUARDED_BY(mu_) = 0;
  int fail_ ABSL_GUARDED_BY(mu_) = 0;
  int registered_ ABSL_GUARDED_BY(mu_) = 0;
  int refused_ ABSL_GUARDED_BY(mu_) = 0;
};

// All of it is mapped in this process.
bool IsMapped(const void* address, Bytes bytes);

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_MEMORY_FAKE_REGISTRAR_H_
