#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {

TempDir::TempDir() {
  char name[] = "/tmp/ubd-test-XXXXXX";
  if (::mkdtemp(name) == nullptr || ::chmod(name, 0755) != 0) std::abort();
  path_ = name;
}
TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool Eventually(const std::function<bool()>& done, absl::Duration within) {
  const absl::Time end = absl::Now() + within;
  while (!done()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

bool WaitReadable(int fd, absl::Duration within) {
  pollfd entry = {fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(within))) > 0;
}

size_t OpenFdCount() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

ub::UniqueFd ConnectTo(const std::string& path, int type, int* error) {
  ub::UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const bool ok = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  if (error != nullptr) *error = ok ? 0 : errno;
  if (!ok) fd.reset();
  return fd;
}

absl::Status SendHello(int lifeline, const std::string& name, const std::vector<int>& fds) {
  auto hello = ub::wire::NewFrame<ub::wire::Hello>();
  hello.pid = ::getpid();
  ub::wire::SetText(hello.name, name);
  return ub::wire::SendPacket(lifeline, ub::wire::AsBytes(hello), fds);
}

absl::StatusOr<ub::wire::Packet> Receive(int lifeline, absl::Duration within) {
  if (!WaitReadable(lifeline, within)) return absl::UnavailableError("nothing came");
  return ub::wire::ReceivePacket(lifeline);
}

template <class Frame>
absl::StatusOr<Frame> ReceiveFrame(int lifeline, std::vector<ub::UniqueFd>* fds) {
  absl::StatusOr<ub::wire::Packet> packet = Receive(lifeline);
  if (!packet.ok()) return packet.status();
  if (packet->bytes.empty()) return absl::AbortedError("hung up");
  absl::StatusOr<ub::wire::Frame> frame = ub::wire::ParseFrame(packet->bytes);
  if (!frame.ok()) return frame.status();
  const Frame* wanted = std::get_if<Frame>(&*frame);
  if (wanted == nullptr) {
    const auto* failed = std::get_if<ub::wire::GrantFailed>(&*frame);
    return absl::InternalError(
        absl::StrCat("another frame came: index ", frame->index(), " ", failed ? ub::wire::GetText(failed->text) : ""));
  }
  if (fds != nullptr) *fds = std::move(packet->fds);
  return *wanted;
}
template absl::StatusOr<ub::wire::Welcome> ReceiveFrame(int, std::vector<ub::UniqueFd>*);
template absl::StatusOr<ub::wire::Refuse> ReceiveFrame(int, std::vector<ub::UniqueFd>*);
template absl::StatusOr<ub::wire::Grant> ReceiveFrame(int, std::vector<ub::UniqueFd>*);
template absl::StatusOr<ub::wire::GrantFailed> ReceiveFrame(int, std::vector<ub::UniqueFd>*);
template absl::StatusOr<ub::wire::QueueGrant> ReceiveFrame(int, std::vector<ub::UniqueFd>*);

absl::Status SendOffer(int lifeline, uint64_t number, const std::vector<int>& fds) {
  auto offer = ub::wire::NewFrame<ub::wire::Offer>();
  offer.offer = number;
  return ub::wire::SendPacket(lifeline, ub::wire::AsBytes(offer), fds);
}

bool HungUp(int fd, absl::Duration within) {
  pollfd entry = {fd, POLLRDHUP, 0};
  return ::poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(within))) > 0;
}

std::string RawClient::token_hex() const {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(welcome.token.data()), welcome.token.size()));
}

absl::StatusOr<RawClient> Join(const std::string& lifeline_path, const std::string& name) {
  RawClient client;
  int error = 0;
  client.lifeline = ConnectTo(lifeline_path, SOCK_SEQPACKET, &error);
  if (!client.lifeline.valid()) return ub::ErrnoError(error, "connect");
  absl::Status sent = SendHello(client.lifeline.get(), name);
  if (!sent.ok()) return sent;
  std::vector<ub::UniqueFd> fds;
  absl::StatusOr<ub::wire::Welcome> welcome = ReceiveFrame<ub::wire::Welcome>(client.lifeline.get(), &fds);
  if (!welcome.ok()) return welcome.status();
  client.welcome = *welcome;
  if (fds.size() == 1) client.page = std::move(fds[0]);
  return client;
}

void Child::Channel::Say(char what) const { (void)!::send(fd, &what, 1, MSG_NOSIGNAL); }
char Child::Channel::Hear(absl::Duration within) const {
  char what = 0;
  if (!WaitReadable(fd, within) || ::read(fd, &what, 1) != 1) return 0;
  return what;
}

Child::Child(const std::function<int(const Channel&)>& body) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  pid_ = ::fork();
  if (pid_ == 0) {
    constexpr int kChannelFd = 3;
    if (ends[1] != kChannelFd) ::dup3(ends[1], kChannelFd, O_CLOEXEC);
    // Nothing of the daemon's may live on in its client.
    ::close_range(kChannelFd + 1, ~0u, 0);
    Channel channel;
    channel.fd = kChannelFd;
    ::_exit(body(channel));
  }
  ::close(ends[1]);
  end_.reset(ends[0]);
  channel_.fd = ends[0];
}

Child::~Child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Child::Signal(int signal) const { ::kill(pid_, signal); }

int Child::Wait(absl::Duration within) {
  int status = 0;
  bool ended = Eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, within);
  if (!ended) return -1;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

bool BecomeUser(uid_t uid, gid_t gid, gid_t group) {
  return ::setgroups(1, &group) == 0 && ::setresgid(gid, gid, gid) == 0 && ::setresuid(uid, uid, uid) == 0;
}

}  // namespace ubd::testing
