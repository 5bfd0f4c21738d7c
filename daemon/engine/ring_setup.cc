#include "daemon/engine/ring_setup.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

std::string CauseAndCure(int error, const SystemFiles& files) {
  const uint64_t disabled = files.ReadNumber("/proc/sys/kernel/io_uring_disabled").value_or(0);
  if (error == EPERM && disabled != 0) {
    return absl::StrCat("kernel.io_uring_disabled is ", disabled,
                        ": allow it with `sysctl kernel.io_uring_disabled=0`, or with 1 and ubd in the group of "
                        "kernel.io_uring_group");
  }
  const bool filtered = FindNumber(files.Read("/proc/self/status").value_or(""), "Seccomp").value_or(0) == 2;
  if (filtered && (error == EPERM || error == ENOSYS || error == EACCES)) {
    return "a seccomp filter forbids it: allow io_uring_setup, io_uring_enter and io_uring_register (SystemCallFilter= "
           "of the unit, the container's seccomp profile)";
  }
  if (error == ENOSYS) return "this kernel was built without it: use one with CONFIG_IO_URING";
  if (error == ENOMEM) return "no memory for its rings: raise LimitMEMLOCK of the unit (`ulimit -l`)";
  if (error == EMFILE || error == ENFILE) return "no file descriptor left: raise LimitNOFILE of the unit";
  return "a security policy or an old kernel may be the cause";
}

}  // namespace

absl::Status ExplainNoRing(int error, const SystemFiles& files) {
  return ub::MakeError(
      absl::StatusCode::kUnavailable, ub::Reason::kKernelRefused,
      absl::StrCat("io_uring is not available (", std::strerror(error), "): ", CauseAndCure(error, files)),
      {{"call", "io_uring_setup"}, {"errno", std::to_string(error)}});
}

absl::Status SetUpRing(io_uring& ring, uint32_t entries) {
  io_uring_params params = {};
  // One bad entry must not hold back those behind it. (COOP_TASKRUN was measured and gains nothing here, while a lane
  // that spins would need a system call to get its completions.)
  params.flags = IORING_SETUP_SUBMIT_ALL;
  int result = ::io_uring_queue_init_params(entries, &ring, &params);
  if (result == -EINVAL) {  // a kernel that does not know it
    params = {};
    result = ::io_uring_queue_init_params(entries, &ring, &params);
  }
  if (result != 0) return ExplainNoRing(-result, SystemFiles());
  ::io_uring_ring_dontfork(&ring);
  return absl::OkStatus();
}

}  // namespace ubd
