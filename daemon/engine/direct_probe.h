// Does O_DIRECT on this file really bypass the page cache? Opening with it proves nothing (tmpfs accepts it); what
// counts is that the file system states what alignment it needs. Only for files that may be asked something.
#ifndef UBD_ENGINE_DIRECT_PROBE_H_
#define UBD_ENGINE_DIRECT_PROBE_H_

#include <cstdint>
#include <optional>

namespace ubd {

struct DirectAlignment {
  uint32_t memory = 1;
  uint32_t offset = 1;
};

// `fd` was opened with O_DIRECT. None: not proven.
std::optional<DirectAlignment> ProbeDirect(int fd, bool block_device);

}  // namespace ubd

#endif  // UBD_ENGINE_DIRECT_PROBE_H_
