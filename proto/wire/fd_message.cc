#include "proto/wire/fd_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "proto/wire/error.h"
#include "proto/wire/lifeline.h"

namespace ub::wire {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMaxFdsPerFrame);

void TakeFds(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

absl::StatusOr<Packet> Receive(int socket, size_t most_bytes, absl::Span<char> control) {
  Packet packet;
  packet.bytes.resize(most_bytes);
  iovec data = {packet.bytes.data(), packet.bytes.size()};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received;
  do {
    received = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return ErrnoError(errno, "recvmsg on the lifeline");
  TakeFds(message, packet.fds);
  packet.fds_truncated = (message.msg_flags & MSG_CTRUNC) != 0;
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kMalformedFrame,
                     "a lifeline frame is longer than any known one");
  }
  packet.bytes.resize(static_cast<size_t>(received));
  return packet;
}

}  // namespace

absl::Status SendPacket(int socket, absl::Span<const std::byte> bytes, absl::Span<const int> fds) {
  if (fds.size() > kMaxFdsPerFrame) return absl::InvalidArgumentError("more fds than one packet can carry");
  iovec data = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    std::memset(control, 0, message.msg_controllen);
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return ErrnoError(errno, "sendmsg on the lifeline");
  return absl::OkStatus();
}

absl::StatusOr<Packet> ReceivePacket(int socket, size_t most_bytes) {
  alignas(cmsghdr) char control[kControlBytes];
  return Receive(socket, most_bytes, {control, sizeof(control)});
}

absl::StatusOr<Packet> ReceiveBytes(int socket) { return Receive(socket, kMaxFrameBytes, {}); }

}  // namespace ub::wire
