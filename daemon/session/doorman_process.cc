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
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"

namespace ubd {
namespace {

// Receivers that have retired and do not end, as a user's file system does not let them. With so many of one user, or
// in all, no descriptors are taken for a while.
constexpr size_t kMostStuckPerUid = 16;
constexpr size_t kMostStuck = 256;
// After so many packets without their descriptors a receiver makes way for one that knows how things are now.
constexpr int kCarefulPackets = 256;
// How long a user's retired receivers may take to end before they count as stuck.
constexpr int kEndMs = 20;
// Of a receiver that was killed, or that holds nobody's descriptor.
constexpr uint32_t kNobody = UINT32_MAX;

// What the keeper knows of retired receivers.
class Retired {
 public:
  void Add(pid_t receiver, uint32_t uid) {
    if (receivers_.emplace(receiver, uid).second) ++of_uid_[uid];
  }
  void Reap() {
    for (pid_t ended; (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0;) {
      auto it = receivers_.find(ended);
      if (it == receivers_.end()) continue;
      --of_uid_[it->second];
      receivers_.erase(it);
    }
  }
  bool TooMany(uint32_t uid) const {
    auto it = of_uid_.find(uid);
    return receivers_.size() >= kMostStuck || (it != of_uid_.end() && it->second >= kMostStuckPerUid);
  }
  // Gives those that are on their way the time to end.
  void Await(uint32_t uid) {
    for (int ms = 0; ms < kEndMs && TooMany(uid); ++ms) {
      ::poll(nullptr, 0, 1);
      Reap();
    }
  }

 private:
  std::map<pid_t, uint32_t> receivers_;
  std::map<uint32_t, size_t> of_uid_;
};

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
    if (!absl::SimpleAtoi(ub::DetailOf(packet.status(), "errno").value_or(""), &answer.error)) answer.error = EPROTO;
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

[[noreturn]] void Receive(int socket, int retiring, const Retired& retired, const OfferJudge& judge) {
  uint32_t holds_of = kNobody;
  for (int careful_packets = 0; careful_packets < kCarefulPackets && holds_of == kNobody;) {
    pollfd wait = {socket, POLLIN, 0};
    if (::poll(&wait, 1, -1) < 0 && errno != EINTR) break;
    absl::StatusOr<ub::wire::Packet> question = ub::wire::ReceivePacket(socket);
    if (!question.ok()) continue;
    if (question->bytes.empty()) break;  // the daemon has gone
    DoormanQuestion asked = {};
    if (question->bytes.size() != sizeof(asked) || question->fds.size() != 1) continue;
    std::memcpy(&asked, question->bytes.data(), sizeof(asked));
    const bool careful = retired.TooMany(asked.uid);
    if (careful) ++careful_packets;
    if (Answer(socket, asked, question->fds[0].get(), careful, judge)) holds_of = asked.uid;
  }
  // Closed by hand: the end of this process may never come to them.
  ::close(socket);
  (void)!::write(retiring, &holds_of, sizeof(holds_of));
  ::close(retiring);
  ::_exit(0);
}

// Until it retires; the user who keeps it from ending, if any.
uint32_t AwaitRetiring(int pipe) {
  uint32_t uid = kNobody;
  while (::read(pipe, &uid, sizeof(uid)) < 0 && errno == EINTR) {
  }
  ::close(pipe);
  return uid;
}

bool DaemonHasGone(int socket) {
  pollfd entry = {socket, 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLHUP) != 0;
}

}  // namespace

void KeepReceivers(int socket, int daemon_pid, const OfferJudge& judge) {
  EndWith(daemon_pid);
  ::prctl(PR_SET_NAME, "ubd-doorman");
  const pid_t keeper = ::getpid();
  Retired retired;
  while (!DaemonHasGone(socket)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::_exit(1);
    retired.Reap();
    const pid_t receiver = ::fork();
    if (receiver == 0) {
      EndWith(keeper);
      ::close(ends[0]);
      Receive(socket, ends[1], retired, judge);
    }
    ::close(ends[1]);
    const uint32_t uid = AwaitRetiring(ends[0]);
    if (receiver > 0 && uid != kNobody) retired.Add(receiver, uid);
    if (uid != kNobody) retired.Await(uid);
    // Without a receiver the daemon's questions wait; trying again at once would only spin.
    if (receiver < 0) ::poll(nullptr, 0, 100);
  }
  ::_exit(0);
}

}  // namespace ubd
