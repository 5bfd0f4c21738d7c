#include "client/ubctl/verify/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_format.h"
#include "client/ubctl/seed.h"

namespace ub::ctl {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

// Eight bytes, the same on every machine.
std::array<std::byte, kWord> Word(uint64_t seed, uint64_t index) {
  uint64_t value = Mix(seed ^ Mix(index));
  std::array<std::byte, kWord> bytes;
  for (size_t i = 0; i < kWord; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

}  // namespace

void FillPattern(uint64_t seed, uint64_t position, absl::Span<std::byte> out) {
  while (!out.empty()) {
    std::array<std::byte, kWord> word = Word(seed, position / kWord);
    size_t skip = position % kWord;
    size_t take = std::min(kWord - skip, out.size());
    std::memcpy(out.data(), word.data() + skip, take);
    out.remove_prefix(take);
    position += take;
  }
}

std::optional<size_t> FirstDifference(absl::Span<const std::byte> is, absl::Span<const std::byte> should_be) {
  if (is.size() == should_be.size() && std::memcmp(is.data(), should_be.data(), is.size()) == 0) return std::nullopt;
  size_t common = std::min(is.size(), should_be.size());
  return static_cast<size_t>(std::mismatch(is.begin(), is.begin() + common, should_be.begin()).first - is.begin());
}

std::string DescribeDifference(absl::Span<const std::byte> is, absl::Span<const std::byte> should_be) {
  std::optional<size_t> first = FirstDifference(is, should_be);
  if (!first.has_value()) return "no difference";
  size_t common = std::min(is.size(), should_be.size());
  if (*first == common) return absl::StrFormat("%d bytes are there and should be %d", is.size(), should_be.size());
  size_t count = 0;
  size_t last = *first;
  for (size_t i = *first; i < common; ++i) {
    if (is[i] == should_be[i]) continue;
    ++count;
    last = i;
  }
  return absl::StrFormat("byte %d is 0x%02x and should be 0x%02x; %d bytes differ, up to byte %d", *first,
                         std::to_integer<unsigned>(is[*first]), std::to_integer<unsigned>(should_be[*first]), count,
                         last);
}

}  // namespace ub::ctl
