#include "client/ubctl/child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ub/error.h"

namespace ub::ctl {

absl::StatusOr<Child> Child::Start(const std::vector<std::string>& arguments) {
  std::array<int, 2> pair = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return ErrnoError(errno, "socketpair");
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  std::string name = "ubctl";
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv = {name.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kChildSocket);  // also clears close-on-exec, even for 3 on 3
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoError(error, "start a second ubctl");
  return Child(pid, std::move(ours));
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(socket_, other.socket_);
  return *this;
}

Child::~Child() {
  if (pid_ < 0) return;
  Kill();
  (void)Reap();
}

void Child::Kill() const {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

std::string Child::Reap() {
  if (pid_ < 0) return "is gone";
  socket_.reset();
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  pid_ = -1;
  if (WIFSIGNALED(status))
    return absl::StrCat("was killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return WEXITSTATUS(status) == 0 ? "" : absl::StrCat("exited with ", WEXITSTATUS(status));
}

}  // namespace ub::ctl
