// Users by name or number.
#ifndef UBD_CONFIG_USERS_H_
#define UBD_CONFIG_USERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/wire/units.h"

namespace ubd {

// A number is taken as it is, whether such a user exists or not; a name is looked up. Thread-safe.
absl::StatusOr<ub::Uid> ResolveUser(const std::string& user);

}  // namespace ubd

#endif  // UBD_CONFIG_USERS_H_
