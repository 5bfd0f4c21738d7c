#include "daemon/listeners.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/runtime_dir.h"

namespace ubd {
namespace {

int SocketOption(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

absl::Status BadSocket(const std::string& name, const std::string& why) {
  return ub::MakeError(
      absl::StatusCode::kInvalidArgument, ub::Reason::kForeignFile,
      absl::StrCat("the service manager passed \"", name, "\", which ", why,
                   ": the socket units must have ListenStream=…/", std::string(ub::kRpcSocketName),
                   " and ListenSequentialPacket=…/", std::string(ub::kLifelineSocketName), ", once each"),
      {{"name", name}});
}

std::string PathOf(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return std::string(address.sun_path, strnlen(address.sun_path, sizeof(address.sun_path)));
}

absl::Status Adopt(const std::string& name, ub::UniqueFd fd, Listeners& listeners) {
  if (SocketOption(fd.get(), SO_DOMAIN) != AF_UNIX) return BadSocket(name, "is no Unix socket");
  if (SocketOption(fd.get(), SO_ACCEPTCONN) != 1) return BadSocket(name, "does not listen");
  int type = SocketOption(fd.get(), SO_TYPE);
  if (type != SOCK_STREAM && type != SOCK_SEQPACKET)
    return BadSocket(name, "is neither a stream nor a seqpacket socket");
  auto& place = type == SOCK_STREAM ? listeners.rpc : listeners.lifeline;
  if (place != nullptr) return BadSocket(name, "is a second one of its type");
  // The accept loop must never block, whatever the unit says.
  if (int flags = fcntl(fd.get(), F_GETFL); flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return ub::ErrnoError(errno, absl::StrCat("making the passed socket \"", name, "\" non-blocking"));
  }
  place = ListeningSocket::Adopt(std::move(fd));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Listeners> OpenListeners(const std::string& dir, const SocketOptions& options,
                                        std::map<std::string, ub::UniqueFd> passed) {
  Listeners listeners;
  for (auto& [name, fd] : passed) {
    if (absl::Status adopted = Adopt(name, std::move(fd), listeners); !adopted.ok()) return adopted;
  }
  // The lifeline first: a client that finds ubd.sock may count on it.
  if (listeners.lifeline == nullptr) {
    auto bound =
        ListeningSocket::Bind(absl::StrCat(dir, "/", std::string(ub::kLifelineSocketName)), SOCK_SEQPACKET, options);
    if (!bound.ok()) return bound.status();
    listeners.lifeline = *std::move(bound);
  }
  if (listeners.rpc == nullptr) {
    std::string path = absl::StrCat(dir, "/", std::string(ub::kRpcSocketName));
    auto bound = ListeningSocket::Bind(path, SOCK_STREAM, options);
    if (!bound.ok()) return bound.status();
    listeners.rpc = *std::move(bound);
    // Not the name that the kernel remembers: a socket is bound under another one and then renamed.
    listeners.rpc_path = path;
  } else {
    listeners.rpc_path = PathOf(listeners.rpc->fd());
  }
  return listeners;
}

}  // namespace ubd
