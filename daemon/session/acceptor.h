// Accepts on one listening socket. When this process has no descriptor left, a spare one is given up to accept and
// refuse, so that a client gets an answer and the loop does not spin on a backlog that it cannot drain. Loop thread
// only.
#ifndef UBD_SESSION_ACCEPTOR_H_
#define UBD_SESSION_ACCEPTOR_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "daemon/session/event_loop.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class Acceptor {
 public:
  // `accept` takes a new connection (non-blocking, close-on-exec). `refuse` tells a connection, before it is closed,
  // that there is no room.
  Acceptor(EventLoop& loop, ub::UniqueFd listener, std::function<void(ub::UniqueFd)> accept,
           std::function<void(int)> refuse);
  ~Acceptor() { Stop(); }

  absl::Status Start();
  // Closes the listener.
  void Stop();

 private:
  void OnReadable();
  // False: nothing more to do now.
  bool AcceptOne();
  bool ShedOne();
  void Pause();

  EventLoop& loop_;
  ub::UniqueFd listener_;
  ub::UniqueFd spare_;
  const std::function<void(ub::UniqueFd)> accept_;
  const std::function<void(int)> refuse_;
  EventLoop::WatchId watch_ = 0;
  EventLoop::TimerId pause_ = 0;
};

}  // namespace ubd

#endif  // UBD_SESSION_ACCEPTOR_H_
