#include "client/ubctl/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>

namespace ub::ctl {

StopSignals::StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  struct sigaction hup = {};
  sigaction(SIGHUP, nullptr, &hup);
  if (hup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool StopSignals::Pending() const {
  pollfd entry = {.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

UniqueFd MakeEventFd() { return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void Ring(int event_fd) {
  // Can fail only when the counter is full, and then the reader is awake anyway.
  (void)eventfd_write(event_fd, 1);
}

StopWatcher::StopWatcher(const StopSignals& signals, std::function<void()> on_stop) : done_(MakeEventFd()) {
  thread_ = std::thread([stop = signals.fd(), done = done_.get(), on_stop = std::move(on_stop)] {
    std::array<pollfd, 2> entries = {pollfd{.fd = stop, .events = POLLIN, .revents = 0},
                                     pollfd{.fd = done, .events = POLLIN, .revents = 0}};
    while (poll(entries.data(), entries.size(), -1) < 0 && errno == EINTR) {
    }
    if (entries[0].revents != 0) on_stop();
  });
}

StopWatcher::~StopWatcher() {
  Ring(done_.get());
  thread_.join();
}

}  // namespace ub::ctl
