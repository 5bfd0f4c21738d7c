// A child process that runs ubctl itself with other arguments, tied to the parent by a SEQPACKET socketpair. Not
// thread-safe.
#ifndef UB_UBCTL_CHILD_H_
#define UB_UBCTL_CHILD_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/unique_fd.h"

namespace ub::ctl {

// In the child, its end of the socketpair.
inline constexpr int kChildSocket = 3;

class Child {
 public:
  // Starts `ubctl arguments…`. May be called while other threads run.
  static absl::StatusOr<Child> Start(const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  // Kills and reaps it, if that has not been done.
  ~Child();

  int socket() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  // SIGKILL, without waiting.
  void Kill() const;
  // Hangs up and waits for its end. "" when it exited with 0, else how it ended: "was killed by signal 9 (Killed)".
  std::string Reap();

 private:
  Child(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}
  pid_t pid_ = -1;
  UniqueFd socket_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_CHILD_H_
