#include "daemon/session/rpc_connections.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <charconv>
#include <utility>

#include "daemon/session/fd_room.h"
#include "daemon/session/peer_identity.h"

namespace ubd {
namespace {

// A timer this late means that the whole process was stopped or starved.
constexpr absl::Duration kStoodStill = absl::Milliseconds(250);
// A flood of one user must not make others look silent whose first call is in the queue behind it.
constexpr absl::Duration kJustNow = absl::Seconds(1);
constexpr int kMostChances = 8;

// The N of "fd:N"; -1: something else.
int NumberOf(std::string_view grpc_peer) {
  constexpr std::string_view kPrefix = "fd:";
  if (grpc_peer.substr(0, kPrefix.size()) != kPrefix) return -1;
  grpc_peer.remove_prefix(kPrefix.size());
  int number = -1;
  auto [end, error] = std::from_chars(grpc_peer.data(), grpc_peer.data() + grpc_peer.size(), number);
  return error == std::errc() && end == grpc_peer.data() + grpc_peer.size() ? number : -1;
}

}  // namespace

RpcConnections::~RpcConnections() {
  for (;;) {
    int number;
    {
      ub::MutexLock lock(&mu_);
      if (connections_.empty()) return;
      number = connections_.begin()->first;
    }
    End(number);
  }
}

std::optional<RpcPeer> RpcConnections::Lookup(std::string_view grpc_peer) {
  const int number = NumberOf(grpc_peer);
  ub::MutexLock lock(&mu_);
  auto it = connections_.find(number);
  if (it == connections_.end()) return std::nullopt;
  it->second->spoke.store(true, std::memory_order_relaxed);
  last_call_ns_.store(absl::ToInt64Nanoseconds(loop_.Now().since_start()), std::memory_order_relaxed);
  return it->second->peer;
}

void RpcConnections::Drop(std::string_view grpc_peer) {
  const int number = NumberOf(grpc_peer);
  ub::MutexLock lock(&mu_);
  auto it = connections_.find(number);
  // gRPC sees the end of the stream and closes its own; the loop sees the hang-up.
  if (it != connections_.end()) ::shutdown(it->second->own.get(), SHUT_RDWR);
}

// Invalid: the range is full.
ub::UniqueFd RpcConnections::NumberFor(int connection) {
  const FdRoom room = CurrentFdRoom();
  if (next_number_ < room.rpc_first || next_number_ >= room.rpc_last) next_number_ = room.rpc_first;
  for (int from : {next_number_, room.rpc_first}) {
    ub::UniqueFd fd(::fcntl(connection, F_DUPFD_CLOEXEC, from));
    if (!fd.valid() || fd.get() >= room.rpc_last) continue;
    next_number_ = fd.get() + 1;
    return fd;
  }
  return ub::UniqueFd();
}

void RpcConnections::Accept(ub::UniqueFd connection, uint32_t most_per_uid, absl::Duration silence) {
  absl::StatusOr<PeerIdentity> identity = PeerCredentials(connection.get());
  if (!identity.ok()) return;
  auto own = of_uid_.find(identity->uid);
  if (own != of_uid_.end() && own->second >= most_per_uid) return;
  ub::UniqueFd served = NumberFor(connection.get());
  if (!served.valid()) return;
  const int number = served.get();
  auto entry = std::make_shared<Connection>();
  entry->peer = RpcPeer{identity->uid, identity->gid, identity->pid};
  absl::StatusOr<EventLoop::WatchId> watch =
      loop_.Watch(connection.get(), EPOLLRDHUP, [this, number](uint32_t) { End(number); });
  if (!watch.ok()) return;
  entry->own = std::move(connection);
  entry->watch = *watch;
  entry->silence = silence;
  ExpectWords(number, *entry);
  ++of_uid_[identity->uid];
  {
    ub::MutexLock lock(&mu_);
    connections_[number] = entry;
  }
  // Last: its first call may be looked up at once.
  serve_(served.release());
}

void RpcConnections::ExpectWords(int number, Connection& connection) {
  connection.silent_until = loop_.Now() + connection.silence;
  connection.timer = loop_.RunAfter(connection.silence, [this, number] { OnSilence(number); });
}

void RpcConnections::OnSilence(int number) {
  std::shared_ptr<Connection> connection;
  {
    ub::MutexLock lock(&mu_);
    auto it = connections_.find(number);
    if (it == connections_.end()) return;
    connection = it->second;
  }
  connection->timer = 0;
  if (connection->spoke.load(std::memory_order_relaxed)) return;
  // A daemon that stood still evicts nobody: what the client said meanwhile may still wait to be read.
  if (loop_.Now() - connection->silent_until > kStoodStill) return ExpectWords(number, *connection);
  if (Busy() && ++connection->chances < kMostChances) return ExpectWords(number, *connection);
  // gRPC sees the end of the stream and closes its own; so does End, by the hang-up.
  ::shutdown(connection->own.get(), SHUT_RDWR);
}

bool RpcConnections::Busy() const {
  const absl::Duration last = absl::Nanoseconds(last_call_ns_.load(std::memory_order_relaxed));
  return last > absl::ZeroDuration() && loop_.Now().since_start() - last < kJustNow;
}

void RpcConnections::End(int number) {
  std::shared_ptr<Connection> connection;
  {
    ub::MutexLock lock(&mu_);
    auto it = connections_.find(number);
    if (it == connections_.end()) return;
    connection = std::move(it->second);
    connections_.erase(it);
  }
  loop_.Unwatch(connection->watch);
  loop_.Cancel(connection->timer);
  // A peer that closed only its sending half must not keep gRPC's descriptor; answers that are in the socket still
  // reach it.
  ::shutdown(connection->own.get(), SHUT_RDWR);
  auto own = of_uid_.find(connection->peer.uid);
  if (--own->second == 0) of_uid_.erase(own);
}

}  // namespace ubd
