// silent_fuse MOUNTPOINT: mounts a file system that never answers (silent_fuse.h), says "ready", and unmounts when its
// standard input ends or a signal asks it to.
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/support/silent_fuse.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: silent_fuse MOUNTPOINT\n", stderr);
    return 2;
  }
  if (std::string why = ubd::testing::SilentFuse::WhyNot(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  int asked = ::signalfd(-1, &signals, SFD_CLOEXEC);
  auto fuse = ubd::testing::SilentFuse::Mount(argv[1]);
  if (!fuse.ok()) {
    std::fprintf(stderr, "%s\n", std::string(fuse.status().message()).c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::array<pollfd, 2> wanted = {pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{asked, POLLIN, 0}};
  for (char byte; ::poll(wanted.data(), wanted.size(), -1) > 0;) {
    if (wanted[1].revents != 0 || ::read(STDIN_FILENO, &byte, 1) <= 0) break;
  }
  return 0;
}
