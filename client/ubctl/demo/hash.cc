#include "client/ubctl/demo/hash.h"

#include <xxhash.h>

#include <algorithm>

namespace ub::ctl {

Hash::Hash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
Hash::~Hash() { XXH3_freeState(state_); }

void Hash::Add(const std::byte* data, size_t size) { XXH3_128bits_update(state_, data, size); }

HashValue Hash::Value() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_));
  HashValue value;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), value.begin());
  return value;
}

std::string HashText(const HashValue& value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : value) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace ub::ctl
