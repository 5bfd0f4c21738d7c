#include "absl/strings/escaping.h"
#include "proto/wire/error.h"
#include "ub/lease.h"

namespace ub {

std::string Ticket::text() const {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(id_.data()), id_.size()));
}

absl::StatusOr<Ticket> Ticket::Parse(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  std::array<uint8_t, 16> id = {};
  if (text.size() != 2 * id.size() || text.find_first_not_of(kDigits) != std::string_view::npos) {
    // Not shown: a ticket is a secret, even a mistyped one.
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                     "a ticket is 32 hex digits, as Ticket::text gives them");
  }
  std::string raw = absl::HexStringToBytes(absl::string_view(text.data(), text.size()));
  std::copy(raw.begin(), raw.end(), id.begin());
  return Ticket(id);
}

}  // namespace ub
