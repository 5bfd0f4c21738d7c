#include "daemon/engine/direct_probe.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace ubd {

std::optional<DirectAlignment> ProbeDirect(int fd, bool block_device) {
  struct statx facts = {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) != 0) return std::nullopt;
  if ((facts.stx_mask & STATX_DIOALIGN) != 0) {
    // Zero is the file system's word that direct I/O on this file is impossible.
    if (facts.stx_dio_mem_align == 0 || facts.stx_dio_offset_align == 0) return std::nullopt;
    return DirectAlignment{facts.stx_dio_mem_align, facts.stx_dio_offset_align};
  }
  // A kernel that does not tell. A block device has no file system in between: O_DIRECT on it goes to the driver, in
  // units of its logical block.
  int logical = 0;
  if (!block_device || ::ioctl(fd, BLKSSZGET, &logical) != 0 || logical <= 0) return std::nullopt;
  return DirectAlignment{static_cast<uint32_t>(logical), static_cast<uint32_t>(logical)};
}

}  // namespace ubd
