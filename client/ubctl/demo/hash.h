// XXH3, 128 bits, over pieces in order. Not thread-safe.
#ifndef UB_UBCTL_DEMO_HASH_H_
#define UB_UBCTL_DEMO_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

struct XXH3_state_s;

namespace ub::ctl {

using HashValue = std::array<uint8_t, 16>;

class Hash {
 public:
  Hash();
  ~Hash();
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  // Reads the bytes where they are.
  void Add(const std::byte* data, size_t size);
  HashValue Value() const;

 private:
  XXH3_state_s* state_;
};

std::string HashText(const HashValue& value);

}  // namespace ub::ctl

#endif  // UB_UBCTL_DEMO_HASH_H_
