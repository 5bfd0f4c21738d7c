// Bytes that follow from a seed and a position, so that every byte of a block or file can be told from every other, and
// expected contents need not be kept. Pure.
#ifndef UB_UBCTL_VERIFY_PATTERN_H_
#define UB_UBCTL_VERIFY_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"

namespace ub::ctl {

// Bytes [position, position + out.size()) of the pattern of `seed`.
void FillPattern(uint64_t seed, uint64_t position, absl::Span<std::byte> out);

// Where two ranges of equal size first differ.
std::optional<size_t> FirstDifference(absl::Span<const std::byte> is, absl::Span<const std::byte> should_be);

// "byte 17 is 0x00 and should be 0x5a; 4096 bytes differ, up to byte 4112".
std::string DescribeDifference(absl::Span<const std::byte> is, absl::Span<const std::byte> should_be);

}  // namespace ub::ctl

#endif  // UB_UBCTL_VERIFY_PATTERN_H_
