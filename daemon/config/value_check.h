// Checks one scalar value against its field: type, range, words of an enum, and what value_kind demands of a string.
#ifndef UBD_CONFIG_VALUE_CHECK_H_
#define UBD_CONFIG_VALUE_CHECK_H_

#include "daemon/config/fault.h"
#include "daemon/config/tokens.h"

namespace google::protobuf {
class FieldDescriptor;
}

namespace ubd {

// `tokens` stands behind the colon; leaves it behind the value.
void CheckValue(const google::protobuf::FieldDescriptor* field, Tokens* tokens, FaultList* faults);

}  // namespace ubd

#endif  // UBD_CONFIG_VALUE_CHECK_H_
