#include "client/ubctl/tune/channels.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace ub::ctl {

uint64_t DeviceChannels(const std::string& sys, uint64_t device) {
  namespace fs = std::filesystem;
  std::string block = absl::StrCat(sys, "/dev/block/", major(device), ":", minor(device));
  // A partition has no queues of its own; the disk is its parent folder.
  for (const char* where : {"/mq", "/../mq"}) {
    std::error_code error;
    fs::directory_iterator entries(block + where, error);
    if (error) continue;
    auto channels = static_cast<uint64_t>(std::distance(fs::begin(entries), fs::end(entries)));
    return std::max<uint64_t>(channels, 1);
  }
  return 1;
}

}  // namespace ub::ctl
