// What is wrong with a field of a request: INVALID_ARGUMENT with MISSING_FIELD or BAD_FIELD and the detail `field`.
// Pure.
#ifndef UBD_RPC_FIELD_FAULTS_H_
#define UBD_RPC_FIELD_FAULTS_H_

#include <string_view>

#include "absl/status/status.h"

namespace ubd {

absl::Status MissingField(std::string_view field);
absl::Status BadField(std::string_view field, std::string_view why);

}  // namespace ubd

#endif  // UBD_RPC_FIELD_FAULTS_H_
