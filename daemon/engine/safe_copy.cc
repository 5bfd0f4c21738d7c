#include "daemon/engine/safe_copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ubd {

uint64_t SafeCopy(void* to, const void* from, uint64_t bytes, int& error) {
  error = 0;
  // The kernel moves at most 2 GiB a call.
  constexpr uint64_t kMost = uint64_t{1} << 30;
  const pid_t self = getpid();
  uint64_t done = 0;
  while (done < bytes) {
    const uint64_t part = std::min(bytes - done, kMost);
    iovec local = {static_cast<char*>(to) + done, part};
    iovec remote = {const_cast<char*>(static_cast<const char*>(from)) + done, part};
    const ssize_t moved = process_vm_readv(self, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      error = moved < 0 ? errno : EFAULT;
      return done;
    }
    done += static_cast<uint64_t>(moved);
  }
  return done;
}

}  // namespace ubd
