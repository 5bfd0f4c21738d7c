// Versions. The protocol version covers lifeline frames, lease words, queues and ub/v1: client and daemon speak only
// with the same one.
#ifndef UB_WIRE_VERSION_H_
#define UB_WIRE_VERSION_H_

#include <cstdint>
#include <string_view>

namespace ub {

uint32_t ProtocolVersion();
// Of the release, e.g. "0.1.0".
std::string_view ReleaseVersion();

}  // namespace ub

#endif  // UB_WIRE_VERSION_H_
