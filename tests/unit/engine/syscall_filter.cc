#include "tests/unit/engine/syscall_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace ubd::testing {
namespace {

// The listener's descriptor, or 0 where none was asked for; -1 on failure.
int Install(long number, unsigned action, unsigned flags) {
  std::array<sock_filter, 4> code = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog program = {code.size(), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

}  // namespace

bool RefuseSyscall(long number, int error) {
  return Install(number, SECCOMP_RET_ERRNO | (static_cast<unsigned>(error) & SECCOMP_RET_DATA), 0) == 0;
}

bool SyscallAnswers::FilterThisThread(long number) {
  ub::UniqueFd listener(Install(number, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER));
  const bool installed = listener.valid();
  ub::MutexLock lock(&mu_);
  listener_ = std::move(listener);
  changed_.Signal();
  return installed;
}

void SyscallAnswers::Stop() {
  ub::MutexLock lock(&mu_);
  stopped_ = true;
  changed_.Signal();
}

void SyscallAnswers::Serve() {
  int listener = -1;
  {
    ub::MutexLock lock(&mu_);
    while (!listener_.valid() && !stopped_) changed_.Wait(&mu_);
    listener = listener_.get();
  }
  // The end of the filtered thread hangs up.
  for (pollfd wanted = {listener, POLLIN, 0}; ::poll(&wanted, 1, 10000) > 0 && (wanted.revents & POLLIN) != 0;) {
    seccomp_notif call = {};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    seccomp_notif_resp answer = {.id = call.id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (!errors_.empty()) {
      answer.error = -errors_.front();
      answer.flags = 0;
      errors_.pop_front();
    }
    ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

}  // namespace ubd::testing
