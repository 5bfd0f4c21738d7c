#include "proto/wire/version.h"

// Tests build a second daemon or client with another number to see both sides refuse each other.
#ifndef UB_PROTOCOL_VERSION
#define UB_PROTOCOL_VERSION 2
#endif
#ifndef UB_RELEASE_VERSION
#define UB_RELEASE_VERSION "unknown"
#endif

namespace ub {

uint32_t ProtocolVersion() { return UB_PROTOCOL_VERSION; }
std::string_view ReleaseVersion() { return UB_RELEASE_VERSION; }

}  // namespace ub
