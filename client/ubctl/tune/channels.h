// How many hardware queues the device under a file has. 1 where it cannot be told.
#ifndef UB_UBCTL_TUNE_CHANNELS_H_
#define UB_UBCTL_TUNE_CHANNELS_H_

#include <cstdint>
#include <string>

namespace ub::ctl {

// `sys`: where sysfs is, "/sys". `device` as in struct stat (st_dev).
uint64_t DeviceChannels(const std::string& sys, uint64_t device);

}  // namespace ub::ctl

#endif  // UB_UBCTL_TUNE_CHANNELS_H_
