#include "daemon/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "proto/wire/error.h"

namespace ubd {
namespace {

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

}  // namespace

void BlockSignals() {
  sigset_t set = SetOf({SIGTERM, SIGINT, SIGHUP});
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGIO, SIG_IGN);
}

absl::StatusOr<ub::UniqueFd> SignalFd(std::initializer_list<int> signals) {
  sigset_t set = SetOf(signals);
  ub::UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ub::ErrnoError(errno, "signalfd");
  return fd;
}

int ReadSignal(int fd) {
  signalfd_siginfo info;
  return read(fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)) ? static_cast<int>(info.ssi_signo) : 0;
}

ExitOnSignal::ExitOnSignal(std::function<void(int signal)> last_words) : stop_(eventfd(0, EFD_CLOEXEC)) {
  absl::StatusOr<ub::UniqueFd> signals = SignalFd({SIGTERM, SIGINT});
  // Without descriptors the start fails in a moment anyway.
  if (!signals.ok() || !stop_.valid()) return;
  signals_ = *std::move(signals);
  thread_ = std::thread([this, last_words = std::move(last_words)] {
    pollfd fds[] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    for (;;) {
      if (poll(fds, 2, -1) < 0) continue;
      if (fds[1].revents != 0) return;
      if (int signal = ReadSignal(signals_.get()); signal != 0) {
        last_words(signal);
        // Other threads are in the middle of things: no destructor may run. The kernel frees all that this process
        // holds.
        _exit(0);
      }
    }
  });
}

ExitOnSignal::~ExitOnSignal() {
  if (!thread_.joinable()) return;
  uint64_t one = 1;
  // An eventfd that nobody else writes always takes one.
  static_cast<void>(!write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

}  // namespace ubd
