#include "tests/integration/harness/notify_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_split.h"
#include "proto/wire/error.h"
#include "tests/integration/harness/process.h"

namespace ubd::testing {

absl::StatusOr<NotifySocket> NotifySocket::Bind(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return absl::InvalidArgumentError("socket path too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ub::UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), 0777) != 0) {
    return ub::ErrnoError(errno, "binding " + path);
  }
  return NotifySocket(std::move(fd), path);
}

absl::StatusOr<NotifyMessage> NotifySocket::Next(absl::Duration limit) {
  if (!WaitReadable(fd_.get(), limit)) return absl::DeadlineExceededError("no notification within the limit");
  char buffer[8192];
  ssize_t n = recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n < 0) return ub::ErrnoError(errno, "recv on the notify socket");
  NotifyMessage message;
  for (absl::string_view line : absl::StrSplit(absl::string_view(buffer, static_cast<size_t>(n)), '\n')) {
    std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (!field.first.empty()) message.insert(std::move(field));
  }
  history_.push_back(message);
  return message;
}

absl::StatusOr<NotifyMessage> NotifySocket::WaitFor(const std::string& key, absl::Duration limit, int dies) {
  absl::Time end = absl::Now() + limit;
  for (;;) {
    pollfd both[2] = {{fd_.get(), POLLIN, 0}, {dies, POLLIN, 0}};
    int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    int ready = left > 0 ? poll(both, 2, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return absl::DeadlineExceededError("no " + key + " within the limit");
    if ((both[0].revents & POLLIN) != 0) {
      auto message = Next(absl::ZeroDuration());
      if (!message.ok() || message->contains(key)) return message;
    } else if (both[1].revents != 0) {
      return absl::UnavailableError("the sender ended before it said " + key);
    }
  }
}

}  // namespace ubd::testing
