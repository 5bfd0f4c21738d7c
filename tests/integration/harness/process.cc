#include "tests/integration/harness/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <utility>

#include "proto/wire/error.h"

namespace ubd::testing {
namespace {

// All that the child needs, made before fork: only system calls are safe after it in a program with threads.
struct Prepared {
  int program;
  char* const* argv;
  char* const* env;
  std::optional<Ids> ids;
  pid_t parent;
  int in = -1;
  int out = -1;
  int err = -1;
};

// Raw system calls: the C library's own forms signal all threads, which do not exist here.
bool Become(const Ids& ids) {
  return syscall(SYS_setgroups, 0, nullptr) == 0 && syscall(SYS_setresgid, ids.gid, ids.gid, ids.gid) == 0 &&
         syscall(SYS_setresuid, ids.uid, ids.uid, ids.uid) == 0;
}

[[noreturn]] void RunChild(const Prepared& child) {
  if (child.ids && !Become(*child.ids)) _exit(126);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.parent) _exit(126);
  if (child.in >= 0) dup2(child.in, STDIN_FILENO);
  if (child.out >= 0) dup2(child.out, STDOUT_FILENO);
  if (child.err >= 0) dup2(child.err, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  syscall(SYS_execveat, child.program, "", child.argv, child.env, AT_EMPTY_PATH);
  _exit(127);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name = std::string(*entry).substr(0, std::string(*entry).find('=') + 1);
    bool replaced = std::any_of(added.begin(), added.end(), [&](const auto& a) { return a.starts_with(name); });
    if (!replaced) all.emplace_back(*entry);
  }
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

// The child's three standard descriptors (invalid: inherited) and the test's ends of them.
struct Stdio {
  ub::UniqueFd in, out, err;
  ub::UniqueFd our_in, our_out;
};

absl::Status MakePipe(ub::UniqueFd& read_end, ub::UniqueFd& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ub::ErrnoError(errno, "pipe2");
  read_end.reset(ends[0]);
  write_end.reset(ends[1]);
  return absl::OkStatus();
}

absl::StatusOr<Stdio> OpenStdio(const Command& command) {
  Stdio stdio;
  absl::Status made;
  if (command.feed) {
    made = MakePipe(stdio.in, stdio.our_in);
  } else {
    stdio.in.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  if (made.ok() && command.capture) made = MakePipe(stdio.our_out, stdio.out);
  if (!made.ok()) return made;
  if (!command.stderr_path.empty()) {
    stdio.err.reset(open(command.stderr_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!stdio.err.valid()) return ub::ErrnoError(errno, "opening " + command.stderr_path);
  }
  return stdio;
}

int PollTimeout(absl::Duration left) {
  if (left <= absl::ZeroDuration()) return 0;
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(left), INT_MAX - 1)) + 1;
}

}  // namespace

// Through syscall(): the header of glibc 2.36 lacks extern "C".
ub::UniqueFd OpenPidfd(pid_t pid) { return ub::UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

bool WaitReadable(int fd, absl::Duration limit) {
  absl::Time end = absl::Now() + limit;
  for (;;) {
    pollfd one = {fd, POLLIN, 0};
    int n = poll(&one, 1, PollTimeout(end - absl::Now()));
    if (n > 0) return true;
    if (n == 0 && absl::Now() >= end) return false;
    if (n < 0 && errno != EINTR) return false;
  }
}

Process::Process(pid_t pid, ub::UniqueFd pidfd, ub::UniqueFd input, ub::UniqueFd output)
    : pid_(pid), pidfd_(std::move(pidfd)), input_(std::move(input)), output_(std::move(output)) {}

Process::~Process() { Kill(); }

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const Command& command) {
  ub::UniqueFd program(open(command.argv.at(0).c_str(), O_RDONLY | O_CLOEXEC));
  if (!program.valid()) return ub::ErrnoError(errno, "opening the program " + command.argv[0]);
  absl::StatusOr<Stdio> stdio = OpenStdio(command);
  if (!stdio.ok()) return stdio.status();
  std::vector<std::string> environment = Environment(command.env);
  std::vector<char*> argv = Pointers(command.argv), env = Pointers(environment);
  Prepared prepared = {.program = program.get(),
                       .argv = argv.data(),
                       .env = env.data(),
                       .ids = command.ids,
                       .parent = getpid(),
                       .in = stdio->in.get(),
                       .out = stdio->out.get(),
                       .err = stdio->err.get()};
  pid_t pid = fork();
  if (pid == 0) RunChild(prepared);
  if (pid < 0) return ub::ErrnoError(errno, "fork");
  ub::UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) return ub::ErrnoError(errno, "pidfd_open");
  return std::unique_ptr<Process>(
      new Process(pid, std::move(pidfd), std::move(stdio->our_in), std::move(stdio->our_out)));
}

void Process::Signal(int signal) const {
  if (!code_) syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
  // A stop takes a moment to reach every thread; until then one of them may still answer.
  siginfo_t stopped = {};
  if (!code_ && signal == SIGSTOP) waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WNOWAIT);
}

absl::StatusOr<ExitCode> Process::Wait(absl::Duration limit) {
  if (code_) return *code_;
  if (!WaitReadable(pidfd_.get(), limit)) return absl::DeadlineExceededError("the process is still running");
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return ub::ErrnoError(errno, "waitpid");
  }
  code_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return *code_;
}

ExitCode Process::Kill() {
  Signal(SIGKILL);
  return Wait(absl::InfiniteDuration()).value_or(-SIGKILL);
}

absl::StatusOr<std::string> Process::ReadLine(absl::Duration limit) {
  absl::Time end = absl::Now() + limit;
  for (;;) {
    if (size_t at = unread_.find('\n'); at != std::string::npos) {
      std::string line = unread_.substr(0, at);
      unread_.erase(0, at + 1);
      return line;
    }
    if (!WaitReadable(output_.get(), end - absl::Now())) return absl::DeadlineExceededError("no line within the limit");
    char buffer[4096];
    ssize_t n = read(output_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::OutOfRangeError("the process closed its output; so far: '" + unread_ + "'");
    unread_.append(buffer, static_cast<size_t>(n));
  }
}

bool Process::WriteLine(const std::string& line) {
  std::string text = line + "\n";
  // A pipe has no MSG_NOSIGNAL; SIGPIPE would end the test instead of failing it.
  signal(SIGPIPE, SIG_IGN);
  return write(input_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

absl::StatusOr<Finished> RunCommand(Command command, absl::Duration limit) {
  command.capture = true;
  absl::Time end = absl::Now() + limit;
  auto process = Process::Start(command);
  if (!process.ok()) return process.status();
  Finished finished = {};
  for (;;) {
    auto line = (*process)->ReadLine(end - absl::Now());
    if (absl::IsDeadlineExceeded(line.status())) return line.status();
    if (!line.ok()) break;
    finished.out += *line + "\n";
  }
  auto code = (*process)->Wait(end - absl::Now());
  if (!code.ok()) return code.status();
  finished.code = *code;
  return finished;
}

}  // namespace ubd::testing
