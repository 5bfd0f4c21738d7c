#include "daemon/session/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "daemon/session/fd_room.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// Between two looks at the other sockets: a flood of connects does not hold up those who are in.
constexpr int kAcceptsPerTurn = 64;
constexpr absl::Duration kPause = absl::Milliseconds(100);

ub::UniqueFd OpenSpare() { return ub::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Acceptor::Acceptor(EventLoop& loop, ub::UniqueFd listener, std::function<void(ub::UniqueFd)> accept,
                   std::function<void(int)> refuse)
    : loop_(loop),
      listener_(std::move(listener)),
      spare_(OpenSpare()),
      accept_(std::move(accept)),
      refuse_(std::move(refuse)) {}

absl::Status Acceptor::Start() {
  absl::StatusOr<EventLoop::WatchId> watch = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { OnReadable(); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

void Acceptor::Stop() {
  loop_.Cancel(std::exchange(pause_, 0));
  loop_.Unwatch(std::exchange(watch_, 0));
  listener_.reset();
}

void Acceptor::OnReadable() {
  for (int i = 0; i < kAcceptsPerTurn && listener_.valid(); ++i) {
    if (!AcceptOne()) return;
  }
}

bool Acceptor::AcceptOne() {
  ub::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) {
    // The last numbers are for those who are in already: an Acquire needs some, briefly.
    if (fd.get() < CurrentFdRoom().admit_below) {
      accept_(std::move(fd));
    } else {
      refuse_(fd.get());
    }
    return true;
  }
  switch (errno) {
    case EINTR:
    case ECONNABORTED:
      return true;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return ShedOne();
    default:
      return false;  // EAGAIN: all accepted
  }
}

bool Acceptor::ShedOne() {
  spare_.reset();
  ub::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool shed = fd.valid();
  const bool empty = !shed && errno == EAGAIN;
  if (shed) refuse_(fd.get());
  fd.reset();
  spare_ = OpenSpare();
  if (spare_.valid() && (shed || empty)) return shed;
  Pause();
  return false;
}

// Somebody else was faster with the last descriptor. The backlog waits a moment instead of the loop spinning on it.
void Acceptor::Pause() {
  loop_.Rearm(watch_, 0);
  if (pause_ != 0) return;
  pause_ = loop_.RunAfter(kPause, [this] {
    pause_ = 0;
    if (!spare_.valid()) spare_ = OpenSpare();
    loop_.Rearm(watch_, EPOLLIN);
  });
}

}  // namespace ubd
