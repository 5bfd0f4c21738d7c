#include "daemon/config/users.h"

#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

absl::Status BadUser(const std::string& user, const std::string& why) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadField,
                       absl::StrCat("user \"", user, "\" ", why));
}

}  // namespace

absl::StatusOr<ub::Uid> ResolveUser(const std::string& user) {
  if (user.empty()) return BadUser(user, "is empty; write a user's name or number");
  if (std::all_of(user.begin(), user.end(), [](unsigned char c) { return absl::ascii_isdigit(c); })) {
    uint32_t number = 0;
    auto [end, error] = std::from_chars(user.data(), user.data() + user.size(), number);
    // The largest number is (uid_t)-1, which the kernel reads as "no user".
    if (error != std::errc() || number == std::numeric_limits<uint32_t>::max()) {
      return BadUser(user, "is no user number; they go from 0 to 4294967294");
    }
    return ub::Uid(number);
  }
  passwd entry;
  passwd* found = nullptr;
  std::vector<char> buffer(1024);
  int error;
  while ((error = getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found)) == ERANGE) {
    buffer.resize(buffer.size() * 2);
  }
  if (found != nullptr) return ub::Uid(entry.pw_uid);
  if (error != 0) return ub::ErrnoError(error, absl::StrCat("looking up user \"", user, "\""));
  return BadUser(user, "does not exist on this machine; create it first, or write its number");
}

}  // namespace ubd
