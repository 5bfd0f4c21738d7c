#include "daemon/rpc/field_faults.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {

absl::Status MissingField(std::string_view field) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kMissingField,
                       absl::StrCat("the required field \"", std::string(field),
                                    "\" is missing: set it; an absent field is never read as 0"),
                       {{"field", std::string(field)}});
}

absl::Status BadField(std::string_view field, std::string_view why) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadField,
                       absl::StrCat("field \"", std::string(field), "\": ", std::string(why)),
                       {{"field", std::string(field)}});
}

}  // namespace ubd
