// Makes the kernel refuse a system call, or answer it with errors for a while, by seccomp filters. For child processes
// and threads that end soon: a filter never comes off.
#ifndef UBD_TESTS_UNIT_ENGINE_SYSCALL_FILTER_H_
#define UBD_TESTS_UNIT_ENGINE_SYSCALL_FILTER_H_

#include <sys/syscall.h>

#include <deque>

#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

// For the calling thread, and those that it starts later.
bool RefuseSyscall(long number, int error);

// One thread installs the filter and makes the calls, another one serves: it answers them with the errors given, in
// turn, and once these are used up lets them pass.
class SyscallAnswers {
 public:
  explicit SyscallAnswers(std::deque<int> errors) : errors_(std::move(errors)) {}

  bool FilterThisThread(long number);
  // Until Stop.
  void Serve();
  void Stop();
  size_t left() const { return errors_.size(); }

 private:
  ub::Mutex mu_;
  ub::CondVar changed_;
  ub::UniqueFd listener_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<int> errors_;  // Serve's
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_ENGINE_SYSCALL_FILTER_H_
