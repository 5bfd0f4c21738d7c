// Owns one file descriptor and closes it. Move-only.
#ifndef UB_WIRE_UNIQUE_FD_H_
#define UB_WIRE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace ub {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Gives the descriptor up without closing it.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    // On Linux the descriptor is gone even after EINTR, so close is never retried.
    if (int old = std::exchange(fd_, fd); old >= 0) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace ub

#endif  // UB_WIRE_UNIQUE_FD_H_
