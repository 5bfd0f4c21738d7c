// Checked reading and writing of lifeline frames. Pure; the fuzzer's entry.
#ifndef UB_WIRE_FRAME_H_
#define UB_WIRE_FRAME_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/wire/lifeline.h"

namespace ub::wire {

using Frame = std::variant<Hello, Welcome, Refuse, Grant, GrantFailed, QueueGrant, Offer>;

// Copies one frame out of a packet and checks magic, type and exact size. A frame of another protocol version is
// FAILED_PRECONDITION/VERSION_MISMATCH with both versions in details `theirs` and `ours`; any other fault
// INVALID_ARGUMENT/MALFORMED_FRAME. A Refuse is read whatever its version: that is how versions refuse each other.
absl::StatusOr<Frame> ParseFrame(absl::Span<const std::byte> packet);

// A zeroed frame with its header filled in.
template <class T>
T NewFrame();

// Fixed text fields: truncated to fit, NUL-padded; read up to the first NUL, with control characters replaced by '?'.
template <size_t N>
void SetText(std::array<char, N>& field, std::string_view text) {
  field.fill('\0');
  text.copy(field.data(), N - 1);
}
template <size_t N>
std::string GetText(const std::array<char, N>& field) {
  std::string text(field.data(), N);
  text.resize(std::string_view(text).find('\0') == std::string_view::npos ? N : text.find('\0'));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace ub::wire

#endif  // UB_WIRE_FRAME_H_
