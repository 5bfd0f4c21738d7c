#include "client/src/lifeline_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "client/src/connect_socket.h"
#include "client/src/daemon_errors.h"
#include "client/src/fork_guard.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "proto/wire/runtime_dir.h"

namespace ub {
namespace {

absl::Status NoWelcome() {
  return MakeError(absl::StatusCode::kUnavailable, Reason::kNotAnswering,
                   "ubd accepted the connection but does not answer: it is stopped or overloaded");
}

absl::Status Refused(const wire::Refuse& refuse) {
  std::string reason = wire::GetText(refuse.reason);
  if (reason == ReasonName(Reason::kVersionMismatch)) return VersionMismatch(refuse.daemon_protocol);
  return FromWire(refuse.code, reason, wire::GetText(refuse.text));
}

// ParseFrame's error names versions as "theirs" and "ours"; a user wants to know whose.
absl::Status Unreadable(const absl::Status& status) {
  uint32_t theirs = 0;
  if (ReasonOf(status) == Reason::kVersionMismatch &&
      absl::SimpleAtoi(DetailOf(status, "theirs").value_or(""), &theirs)) {
    return VersionMismatch(theirs);
  }
  return status;
}

// The next packet, waiting at most until the deadline. EINTR only costs another look.
absl::StatusOr<wire::Packet> ReceiveWithin(int fd, Deadline deadline) {
  while (true) {
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    int count = ::poll(&ready, 1, deadline.poll_ms());
    if (count > 0) return wire::ReceivePacket(fd);
    if (count < 0 && errno != EINTR) return ErrnoError(errno, "poll of the lifeline");
    if (deadline.passed()) return NoWelcome();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LifelineClient>> LifelineClient::Connect(const std::string& runtime_dir,
                                                                        const std::string& name, Deadline deadline) {
  absl::StatusOr<UniqueFd> fd =
      ConnectSocket(runtime_dir, kLifelineSocketName, SOCK_SEQPACKET, absl::Now() + deadline.left());
  if (!fd.ok()) return fd.status();
  std::unique_ptr<LifelineClient> client(new LifelineClient);
  client->fd_ = *std::move(fd);
  CloseInChild(client->fd_.get());
  absl::Status status = client->SendHello(name);
  if (status.ok()) status = client->ReadWelcome(deadline);
  if (!status.ok()) return status;
  return client;
}

LifelineClient::~LifelineClient() { ForgetInChild(fd_.get()); }

absl::Status LifelineClient::SendHello(const std::string& name) {
  auto hello = wire::NewFrame<wire::Hello>();
  hello.pid = ::getpid();
  wire::SetText(hello.name, name);
  // Where the kernel can name the peer the daemon does not need it; where it cannot, a false one would harm only its
  // sender.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  int fd = pidfd.get();
  absl::Status sent =
      wire::SendPacket(fd_.get(), wire::AsBytes(hello), absl::Span<const int>(&fd, pidfd.valid() ? 1 : 0));
  // A daemon that refuses at once may hang up before it reads; its Refuse is waiting then.
  return DetailOf(sent, "errno") == std::to_string(EPIPE) ? absl::OkStatus() : sent;
}

absl::Status LifelineClient::ReadWelcome(Deadline deadline) {
  absl::StatusOr<wire::Packet> packet = ReceiveWithin(fd_.get(), deadline);
  if (!packet.ok()) return packet.status();
  if (packet->bytes.empty()) {
    return MakeError(absl::StatusCode::kUnavailable, Reason::kSessionEnded,
                     "ubd closed the connection during the handshake; its log says why");
  }
  absl::StatusOr<wire::Frame> frame = wire::ParseFrame(packet->bytes);
  if (!frame.ok()) return Unreadable(frame.status());
  if (const auto* refuse = std::get_if<wire::Refuse>(&*frame)) return Refused(*refuse);
  const auto* welcome = std::get_if<wire::Welcome>(&*frame);
  if (welcome == nullptr) return MalformedLifeline("no Welcome to begin with");
  if (packet->fds_truncated) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, Reason::kClientFdLimit,
        "this process has no file descriptor left for the session; raise its limit (ulimit -n) or close some");
  }
  if (packet->fds.size() != 1) return MalformedLifeline("a Welcome without its page");
  absl::StatusOr<WordPage> words = WordPage::Map(std::move(packet->fds[0]), welcome->word_count);
  if (!words.ok()) return words.status();
  words_ = *std::move(words);
  session_ = SessionId(welcome->session);
  token_ = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(welcome->token.data()), welcome->token.size()));
  return absl::OkStatus();
}

}  // namespace ub
