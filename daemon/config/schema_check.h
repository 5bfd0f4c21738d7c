// Checks the text of a config file against the schema's descriptors and finds every fault in one pass: unknown and
// repeated keys, wrong types, unknown words of an enum, sizes and durations, brackets, a file cut short. (protobuf's
// own parser, which reads the values afterwards, stops at its first fault and points behind it.) Never recurses deeper
// than the schema itself. Pure.
#ifndef UBD_CONFIG_SCHEMA_CHECK_H_
#define UBD_CONFIG_SCHEMA_CHECK_H_

#include <string>

#include "daemon/config/fault.h"

namespace google::protobuf {
class Descriptor;
}

namespace ubd {

// Adds to `faults`; returns whether an unknown key was among them (then a "missing" key may be just mistyped).
bool CheckSchema(const std::string& text, const google::protobuf::Descriptor* root, FaultList* faults);

}  // namespace ubd

#endif  // UBD_CONFIG_SCHEMA_CHECK_H_
