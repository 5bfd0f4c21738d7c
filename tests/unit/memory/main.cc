// Sets huge pages aside for the run where it may, and with --as=UID runs the tests as that user: what is about rights
// proves nothing as root.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr char kPages[] = "/proc/sys/vm/nr_hugepages";
constexpr int64_t kSetAside = 48;

// Changes the number of huge pages by `delta`. Relative and under a lock, so that test programs that run side by side
// do not undo each other.
void ChangeHugePages(int64_t delta) {
  int lock = ::open("/tmp/.ubd-test-hugepages", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0 || ::flock(lock, LOCK_EX) != 0) return;
  int64_t now = 0;
  std::ifstream(kPages) >> now;
  std::ofstream(kPages) << std::max<int64_t>(0, now + delta);
  ::close(lock);
}

constexpr char kInner[] = "UBD_MEMORY_TEST_INNER";

volatile pid_t g_child = 0;

// So that a stopped run ends its child, and then gives the pages back.
void StopChild(int) { ::kill(g_child, SIGKILL); }

// Runs this program again as `uid`; an exec, since a mere setresuid would leave /proc/self to root.
int RunAs(unsigned uid, const std::vector<char*>& arguments) {
  pid_t child = ::fork();
  if (child == 0) {
    ::setenv(kInner, "1", 1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (uid != 0 &&
        (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0)) {
      ::_exit(70);
    }
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(71);
  }
  if (child < 0) return 72;
  g_child = child;
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, StopChild);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return 73;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  unsigned uid = 0;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    if (std::sscanf(argv[i], "--as=%u", &uid) != 1) arguments.push_back(argv[i]);
  }
  arguments.push_back(nullptr);
  const bool root = ::geteuid() == 0;
  if (uid != 0 && !root) {
    std::puts("skipped: only root can run the tests as another user");
    return 77;
  }
  if (root && ::getenv(kInner) == nullptr) {
    ChangeHugePages(kSetAside);
    int code = RunAs(uid, arguments);
    ChangeHugePages(-kSetAside);
    return code;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
