// How the daemon's status reads. Pure.
#ifndef UB_UBCTL_STATUS_TEXT_H_
#define UB_UBCTL_STATUS_TEXT_H_

#include <cstdint>
#include <string>

#include "ub/v1/admin.pb.h"

namespace ub::ctl {

// Empty when the daemon speaks this ubctl's protocol; else both versions and who must be restarted.
std::string ProtocolRemedy(uint32_t daemon_protocol);

std::string StatusText(const v1::Status& status);

}  // namespace ub::ctl

#endif  // UB_UBCTL_STATUS_TEXT_H_
