#include "client/ubctl/human.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace ub::ctl {
namespace {

// One decimal, but none where it says nothing.
std::string Decimal(double value) {
  std::string text = absl::StrFormat("%.1f", value);
  if (text.size() > 2 && text.substr(text.size() - 2) == ".0") text.resize(text.size() - 2);
  return text;
}

std::string TwoUnits(uint64_t seconds, uint64_t unit, std::string_view name, uint64_t smaller,
                     std::string_view smaller_name) {
  uint64_t rest = seconds % unit / smaller;
  std::string text = absl::StrCat(seconds / unit, " ", std::string(name));
  return rest == 0 ? text : absl::StrCat(text, " ", rest, " ", std::string(smaller_name));
}

}  // namespace

std::string HumanSize(uint64_t bytes) {
  constexpr auto kUnits = std::to_array<std::string_view>({"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
  constexpr uint64_t kBytesShownWhole = 10240;
  if (bytes < 1024 || (bytes < kBytesShownWhole && bytes % 1024 != 0)) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(Decimal(value), " ", std::string(kUnits[unit]));
}

std::string HumanDuration(uint64_t nanoseconds) {
  double value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1000) return absl::StrCat(nanoseconds, " ns");
  if (value < 999950) return absl::StrCat(Decimal(value / 1e3), " us");
  if (value < 999950000) return absl::StrCat(Decimal(value / 1e6), " ms");
  uint64_t seconds = nanoseconds / 1000000000;
  constexpr uint64_t kMinute = 60;
  constexpr uint64_t kHour = 60 * kMinute;
  constexpr uint64_t kDay = 24 * kHour;
  if (seconds < kMinute) return absl::StrCat(Decimal(std::floor(value / 1e8) / 10), " s");
  if (seconds < kHour) return TwoUnits(seconds, kMinute, "m", 1, "s");
  if (seconds < kDay) return TwoUnits(seconds, kHour, "h", kMinute, "m");
  return TwoUnits(seconds, kDay, "d", kHour, "h");
}

std::string HumanTime(int64_t unix_nanoseconds) {
  return absl::FormatTime("%H:%M:%E3S", absl::FromUnixNanos(unix_nanoseconds), absl::LocalTimeZone());
}

}  // namespace ub::ctl
