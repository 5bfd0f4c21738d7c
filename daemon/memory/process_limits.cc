#include "daemon/memory/process_limits.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ubd {
namespace {

uint64_t RaiseToHard(__rlimit_resource resource) {
  struct rlimit limit = {};
  if (::getrlimit(resource, &limit) != 0) return 0;
  if (limit.rlim_cur != limit.rlim_max) {
    struct rlimit raised = {limit.rlim_max, limit.rlim_max};
    if (::setrlimit(resource, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

bool MayLockAnything() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

}  // namespace

ProcessLimits RaiseProcessLimits(const SystemFiles& files) {
  ProcessLimits limits;
  limits.max_fds = RaiseToHard(RLIMIT_NOFILE);
  limits.open_fds = files.List("/proc/self/fd").size();
  limits.max_locked = RaiseToHard(RLIMIT_MEMLOCK);
  if (MayLockAnything()) limits.max_locked = UINT64_MAX;
  limits.locked = FindNumber(files.Read("/proc/self/status").value_or(""), "VmLck").value_or(0);
  limits.max_maps = files.ReadNumber("/proc/sys/vm/max_map_count").value_or(UINT64_MAX);
  return limits;
}

}  // namespace ubd
