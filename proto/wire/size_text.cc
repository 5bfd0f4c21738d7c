#include "proto/wire/size_text.h"

#include <array>
#include <cctype>
#include <charconv>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

struct Unit {
  std::string_view name;
  uint32_t shift;
};
constexpr auto kUnits = std::to_array<Unit>({{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}});

absl::Status Bad(std::string_view what, std::string_view text, std::string_view hint) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                   absl::StrCat("bad ", std::string(what), " \"", std::string(text), "\": ", std::string(hint)),
                   {{"value", std::string(text)}});
}

// For MB, G, Gi, mib and their like: the unit that was probably meant.
std::string Hint(std::string_view unit) {
  std::string_view letters = "KMGT";
  char first = unit.empty() ? '\0' : static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  if (letters.find(first) != std::string_view::npos && unit.size() <= 3) {
    return absl::StrCat("\"", std::string(unit), "\" is no unit here; write ", std::string(1, first),
                        "iB (a power of 1024)");
  }
  return "write a whole number with KiB, MiB, GiB or TiB, or plain bytes";
}

}  // namespace

absl::StatusOr<Bytes> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return Bad("size", text, "larger than 2^64 bytes");
  if (error != std::errc()) return Bad("size", text, Hint(""));
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.empty()) return Bytes(number);
  for (const auto& [name, shift] : kUnits) {
    if (unit != name) continue;
    if (number > (std::numeric_limits<uint64_t>::max() >> shift)) return Bad("size", text, "larger than 2^64 bytes");
    return Bytes(number << shift);
  }
  return Bad("size", text, Hint(unit));
}

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  absl::Duration parsed;
  if (!absl::ParseDuration(absl::string_view(text.data(), text.size()), &parsed) || parsed < absl::ZeroDuration() ||
      parsed == absl::InfiniteDuration()) {
    return Bad("duration", text, "write a number and a unit, such as 250ms, 30s, 5m or 2h");
  }
  return parsed;
}

std::string FormatSize(Bytes size) {
  for (const auto& [name, shift] : kUnits) {
    uint64_t unit = uint64_t{1} << shift;
    if (size.count() >= unit && size.count() % unit == 0) return absl::StrCat(size.count() / unit, std::string(name));
  }
  return absl::StrCat(size.count());
}

}  // namespace ub
