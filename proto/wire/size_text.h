// Sizes and durations as people write them; one parser for config files and command lines.
//   size:      64MiB, 2GiB, 512KiB, 1TiB, or plain bytes (4096). Binary units only: MB, GB, G, M are refused with a
//   hint. duration:  250ms, 30s, 5m, 2h, 100us; a whole or decimal number and a unit, or 0.
#ifndef UB_WIRE_SIZE_TEXT_H_
#define UB_WIRE_SIZE_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/units.h"

namespace ub {

// INVALID_ARGUMENT/BAD_FIELD names the text and what is right instead. Overflow is an error.
absl::StatusOr<Bytes> ParseSize(std::string_view text);
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

// The shortest exact form: "64MiB", "4097".
std::string FormatSize(Bytes size);

}  // namespace ub

#endif  // UB_WIRE_SIZE_TEXT_H_
