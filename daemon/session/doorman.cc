#include "daemon/session/doorman.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/session/doorman_process.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

// As many as surely fit into the socket.
constexpr size_t kMostAsked = 64;

// Nothing of the daemon's may live on in there: not its log, nor what its starter waits to see closed.
int KeepOnly(int socket) {
  constexpr int kSocket = 3;
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kSocket; ++fd) ::dup2(null, fd);
  if (socket != kSocket) ::dup3(socket, kSocket, O_CLOEXEC);
  ::close_range(kSocket + 1, ~0U, 0);
  return kSocket;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Doorman>> Doorman::Start(const OfferJudge& judge) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return ub::ErrnoError(errno, "socketpair for the doorman");
  ub::UniqueFd ours(ends[0]), theirs(ends[1]);
  const int daemon_pid = ::getpid();
  const pid_t keeper = ::fork();
  if (keeper < 0) return ub::ErrnoError(errno, "fork of the doorman");
  if (keeper == 0) {
    const int socket = KeepOnly(theirs.release());
    KeepReceivers(socket, daemon_pid, judge);
  }
  return std::unique_ptr<Doorman>(new Doorman(std::move(ours), keeper));
}

// The keeper sees the end of the socket, or dies with this process; its receiver with it.
Doorman::~Doorman() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  ::waitpid(keeper_, nullptr, 0);
}

bool Doorman::Ask(uint64_t tag, int lifeline, const SessionFacts& of) {
  if (asked_ >= kMostAsked) return false;
  const DoormanQuestion question = {tag, of.pid, of.uid.value()};
  if (!ub::wire::SendPacket(socket_.get(), ub::wire::AsBytes(question), {&lifeline, 1}).ok()) return false;
  ++asked_;
  return true;
}

absl::StatusOr<Doorman::Arrival> Doorman::Next() {
  absl::StatusOr<ub::wire::Packet> packet = ub::wire::ReceivePacket(socket_.get(), sizeof(DoormanAnswer));
  if (!packet.ok()) return absl::UnavailableError("no answer now");
  DoormanAnswer answer;
  if (packet->bytes.size() != sizeof(answer)) return absl::AbortedError("the doorman has gone");
  std::memcpy(&answer, packet->bytes.data(), sizeof(answer));
  if (asked_ > 0) --asked_;
  Arrival arrival;
  arrival.tag = answer.tag;
  arrival.error = answer.error;
  const size_t size = std::min<size_t>(answer.size, answer.bytes.size());
  arrival.bytes.assign(answer.bytes.begin(), answer.bytes.begin() + static_cast<ptrdiff_t>(size));
  arrival.fds = answer.fds;
  arrival.truncated = answer.truncated != 0 || packet->fds_truncated;
  arrival.verdict.kind = static_cast<Verdict::Kind>(answer.kind);
  arrival.verdict.file_system = ub::wire::GetText(answer.file_system);
  if (packet->fds.size() == 1) arrival.fd = std::move(packet->fds[0]);
  return arrival;
}

}  // namespace ubd
