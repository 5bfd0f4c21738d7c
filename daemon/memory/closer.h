// Closes descriptors that came from clients and may be anything. The last close of a file asks its file system, and a
// FUSE server that never answers keeps the closing thread for ever, beyond SIGKILL; so a thread of its own does it, and
// is left behind when it is stuck. Thread-safe.
#ifndef UBD_MEMORY_CLOSER_H_
#define UBD_MEMORY_CLOSER_H_

#include <cstddef>
#include <memory>

#include "proto/wire/unique_fd.h"

namespace ubd {

class Closer {
 public:
  Closer();
  // Does not wait for what is not closed yet.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  void Close(ub::UniqueFd fd);
  // Not closed yet.
  size_t pending() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread's too
};

}  // namespace ubd

#endif  // UBD_MEMORY_CLOSER_H_
