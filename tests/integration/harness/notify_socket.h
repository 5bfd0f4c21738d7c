// The service manager's end of the notify protocol: a datagram socket that ubd is told of by NOTIFY_SOCKET. Not
// thread-safe.
#ifndef UBD_TESTS_HARNESS_NOTIFY_SOCKET_H_
#define UBD_TESTS_HARNESS_NOTIFY_SOCKET_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

// One message: "READY=1\nSTATUS=…" as {"READY": "1", "STATUS": "…"}.
using NotifyMessage = std::map<std::string, std::string>;

class NotifySocket {
 public:
  // Binds at `path`, for anybody to write to.
  static absl::StatusOr<NotifySocket> Bind(const std::string& path);

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  absl::StatusOr<NotifyMessage> Next(absl::Duration limit);
  // Reads until a message has `key`, and returns that message. `dies` is a pidfd or a pipe of the sender: readable
  // means that nothing more will come (UNAVAILABLE). -1: not watched.
  absl::StatusOr<NotifyMessage> WaitFor(const std::string& key, absl::Duration limit, int dies = -1);
  // Everything read so far, in order.
  const std::vector<NotifyMessage>& history() const { return history_; }

 private:
  NotifySocket(ub::UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  ub::UniqueFd fd_;
  std::string path_;
  std::vector<NotifyMessage> history_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_NOTIFY_SOCKET_H_
