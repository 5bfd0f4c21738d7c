// Config as its message: every key set that has a value in effect. What is unset there has none (no limit, off, any
// node).
#ifndef UBD_CONFIG_MESSAGE_H_
#define UBD_CONFIG_MESSAGE_H_

#include "daemon/config/config.h"
#include "ub/v1/config.pb.h"

namespace ubd {

ub::v1::Config ToMessage(const Config& config);
// Its sections `engine` and `path`.
void WriteEngine(const EngineOptions& engine, ub::v1::Config* message);

}  // namespace ubd

#endif  // UBD_CONFIG_MESSAGE_H_
