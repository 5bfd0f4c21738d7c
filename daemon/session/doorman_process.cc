#include "daemon/session/doorman_process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

// Receivers that have retired and do not end, as somebody's file system does not let them. With so many, the next one
// takes no descriptors at all for a while.
constexpr size_t kMostStuck = 64;
constexpr int kCarefulPackets = 256;
// Told to the keeper: make another.
constexpr char kRetiring = 'r';

void EndWith(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
}

// Whether the receiver must retire: it holds something that it cannot close.
bool Answer(int socket, const DoormanQuestion& question, int lifeline, bool careful, const OfferJudge& judge) {
  DoormanAnswer answer = {};
  answer.tag = question.tag;
  absl::StatusOr<ub::wire::Packet> packet =
      careful ? ub::wire::ReceiveBytes(lifeline) : ub::wire::ReceivePacket(lifeline);
  if (!packet.ok()) {
    answer.error = EPROTO;
    int number = 0;
    if (absl::SimpleAtoi(ub::DetailOf(packet.status(), "errno").value_or(""), &number)) answer.error = number;
    (void)ub::wire::SendPacket(socket, ub::wire::AsBytes(answer), {});
    return false;
  }
  answer.size = static_cast<uint32_t>(packet->bytes.size());
  std::memcpy(answer.bytes.data(), packet->bytes.data(), packet->bytes.size());
  answer.fds = static_cast<uint32_t>(packet->fds.size());
  answer.truncated = packet->fds_truncated ? 1 : 0;
  bool retire = false;
  for (const ub::UniqueFd& fd : packet->fds) {
    const Verdict verdict = judge(fd.get(), question.pid);
    answer.kind = static_cast<uint8_t>(verdict.kind);
    ub::wire::SetText(answer.file_system, verdict.file_system);
    retire |= verdict.kind != Verdict::Kind::kHarmless;
  }
  const bool hand_on = packet->fds.size() == 1 && !retire;
  const int fd = hand_on ? packet->fds[0].get() : -1;
  if (!ub::wire::SendPacket(socket, ub::wire::AsBytes(answer), {&fd, hand_on ? size_t{1} : 0}).ok() && hand_on) {
    answer.truncated = 1;
    (void)ub::wire::SendPacket(socket, ub::wire::AsBytes(answer), {});
  }
  // The end of the process closes them.
  if (retire) {
    for (ub::UniqueFd& stranger : packet->fds) (void)stranger.release();
  }
  return retire;
}

[[noreturn]] void Receive(int socket, int retiring, bool careful, const OfferJudge& judge) {
  for (int packets = 0; !careful || packets < kCarefulPackets; ++packets) {
    pollfd wait = {socket, POLLIN, 0};
    if (::poll(&wait, 1, -1) < 0 && errno != EINTR) break;
    absl::StatusOr<ub::wire::Packet> question = ub::wire::ReceivePacket(socket);
    if (!question.ok()) continue;
    if (question->bytes.empty()) break;  // the daemon has gone
    DoormanQuestion asked = {};
    if (question->bytes.size() != sizeof(asked) || question->fds.size() != 1) continue;
    std::memcpy(&asked, question->bytes.data(), sizeof(asked));
    if (Answer(socket, asked, question->fds[0].get(), careful, judge)) break;
  }
  (void)!::write(retiring, &kRetiring, 1);
  ::_exit(0);
}

void Reap(std::set<pid_t>& receivers) {
  for (pid_t ended; (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0;) receivers.erase(ended);
}

bool DaemonHasGone(int socket) {
  pollfd entry = {socket, 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

}  // namespace

void KeepReceivers(int socket, int daemon_pid, const OfferJudge& judge) {
  EndWith(daemon_pid);
  ::prctl(PR_SET_NAME, "ubd-doorman");
  std::set<pid_t> receivers;
  while (!DaemonHasGone(socket)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(1);
    Reap(receivers);
    const bool careful = receivers.size() >= kMostStuck;
    const pid_t keeper = ::getpid();
    const pid_t receiver = ::fork();
    if (receiver == 0) {
      EndWith(keeper);
      ::close(ends[0]);
      Receive(socket, ends[1], careful, judge);
    }
    ::close(ends[1]);
    if (receiver > 0) receivers.insert(receiver);
    char said = 0;
    // Nothing said: it was killed. Without a receiver the daemon's questions wait; trying again at once would only
    // spin.
    while (::read(ends[0], &said, 1) < 0 && errno == EINTR) {
    }
    ::close(ends[0]);
    if (receiver < 0) ::poll(nullptr, 0, 100);
  }
  ::_exit(0);
}

}  // namespace ubd
