#include "client/ubctl/demo/message.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "client/src/mono_time.h"
#include "proto/wire/frame.h"

namespace ub::ctl {
namespace {

static_assert(std::is_trivially_copyable_v<DemoMessage>);

absl::Status PeerGone() { return absl::UnavailableError("the other process of the demo is gone"); }

}  // namespace

absl::Status SendMessage(int socket, const DemoMessage& message) {
  ssize_t sent = 0;
  do {
    sent = send(socket, &message, sizeof(message), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == sizeof(message)) return absl::OkStatus();
  return errno == EPIPE || errno == ECONNRESET ? PeerGone()
                                               : ErrnoError(errno, "send to the other process of the demo");
}

absl::StatusOr<std::optional<DemoMessage>> TryReceiveMessage(int socket) {
  DemoMessage message;
  ssize_t got = 0;
  do {
    got = recv(socket, &message, sizeof(message), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(message)) return message;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  return PeerGone();
}

absl::StatusOr<DemoMessage> ReceiveMessage(int socket, absl::Duration patience) {
  DemoMessage message;
  Deadline deadline = Deadline::After(patience);
  pollfd entry = {.fd = socket, .events = POLLIN, .revents = 0};
  while (poll(&entry, 1, deadline.poll_ms()) <= 0) {
    if (deadline.passed()) return absl::DeadlineExceededError("the other process of the demo says nothing");
  }
  ssize_t got = 0;
  do {
    got = recv(socket, &message, sizeof(message), 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(message)) return PeerGone();
  return message;
}

DemoMessage FailureMessage(const absl::Status& status) {
  DemoMessage message;
  message.kind = DemoKind::kFailed;
  message.code = static_cast<int32_t>(status.code());
  wire::SetText(message.reason, ReasonName(ReasonOf(status)));
  wire::SetText(message.text, {status.message().data(), status.message().size()});
  return message;
}

absl::Status FailureStatus(const DemoMessage& message) {
  std::string text = absl::StrCat("the consumer failed: ", wire::GetText(message.text));
  return MakeError(static_cast<absl::StatusCode>(message.code), ReasonFromName(wire::GetText(message.reason)), text);
}

}  // namespace ub::ctl
