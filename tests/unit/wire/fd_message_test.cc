#include "proto/wire/fd_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "proto/wire/lifeline.h"

namespace ub::wire {
namespace {

struct SocketPair {
  SocketPair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    a.reset(ends[0]);
    b.reset(ends[1]);
  }
  UniqueFd a, b;
};

UniqueFd Memfd(const char* name) { return UniqueFd(::memfd_create(name, MFD_CLOEXEC)); }

ino_t InodeOf(int fd) {
  struct stat info = {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_ino;
}

int CountOpenFds() {
  int open = 0;
  for (int fd = 0; fd < 4096; ++fd) open += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

absl::Span<const std::byte> Text(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(FdMessage, BytesAndFdsArriveInOrderAndCloseOnExec) {
  SocketPair pair;
  std::vector<UniqueFd> files;
  std::vector<int> raw;
  for (int i = 0; i < 5; ++i) {
    files.push_back(Memfd("x"));
    raw.push_back(files.back().get());
  }
  ASSERT_TRUE(SendPacket(pair.a.get(), Text("hello"), raw).ok());
  absl::StatusOr<Packet> packet = ReceivePacket(pair.b.get());
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(packet->bytes.data()), packet->bytes.size()), "hello");
  ASSERT_EQ(packet->fds.size(), 5u);
  EXPECT_FALSE(packet->fds_truncated);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(InodeOf(packet->fds[i].get()), InodeOf(raw[i]));
    EXPECT_EQ(::fcntl(packet->fds[i].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
}

TEST(FdMessage, LargestPacketAndLargestFrameFit) {
  SocketPair pair;
  UniqueFd file = Memfd("x");
  std::vector<int> raw(kMaxFdsPerFrame, file.get());
  std::vector<std::byte> bytes(kMaxFrameBytes, std::byte{7});
  ASSERT_TRUE(SendPacket(pair.a.get(), bytes, raw).ok());
  absl::StatusOr<Packet> packet = ReceivePacket(pair.b.get());
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_EQ(packet->fds.size(), kMaxFdsPerFrame);
  EXPECT_EQ(packet->bytes, bytes);
  EXPECT_FALSE(packet->fds_truncated);
}

TEST(FdMessage, TooManyFdsAreRefusedBeforeTheKernelSeesThem) {
  SocketPair pair;
  UniqueFd file = Memfd("x");
  std::vector<int> raw(kMaxFdsPerFrame + 1, file.get());
  EXPECT_EQ(SendPacket(pair.a.get(), Text("x"), raw).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(ReceivePacket(pair.b.get()).status(), "errno"), std::to_string(EAGAIN));
}

TEST(FdMessage, NothingToReadIsEagainNotAHangUp) {
  SocketPair pair;
  absl::Status empty = ReceivePacket(pair.b.get()).status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(empty, "errno"), std::to_string(EAGAIN));
}

TEST(FdMessage, HangUpIsAnEmptyPacket) {
  SocketPair pair;
  pair.a.reset();
  absl::StatusOr<Packet> packet = ReceivePacket(pair.b.get());
  ASSERT_TRUE(packet.ok()) << packet.status();
  EXPECT_TRUE(packet->bytes.empty());
}

TEST(FdMessage, PeerThatIsGoneIsEpipeAndNoSignal) {
  SocketPair pair;
  pair.b.reset();
  absl::Status gone = SendPacket(pair.a.get(), Text("x"), {});
  EXPECT_EQ(DetailOf(gone, "errno"), std::to_string(EPIPE));
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
}

TEST(FdMessage, PeerThatNeverReadsIsEagainAndNeverBlocks) {
  SocketPair pair;
  absl::Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i) status = SendPacket(pair.a.get(), Text("x"), {});
  EXPECT_EQ(DetailOf(status, "errno"), std::to_string(EAGAIN));
}

TEST(FdMessage, LongerPacketThanAnyFrameIsRefusedAndItsFdsClosed) {
  SocketPair pair;
  UniqueFd file = Memfd("x");
  int raw[] = {file.get(), file.get()};
  std::vector<std::byte> bytes(kMaxFrameBytes + 1);
  ASSERT_TRUE(SendPacket(pair.a.get(), bytes, raw).ok());
  int before = CountOpenFds();
  absl::Status refused = ReceivePacket(pair.b.get()).status();
  EXPECT_EQ(ReasonOf(refused), Reason::kMalformedFrame);
  EXPECT_EQ(CountOpenFds(), before);
}

TEST(FdMessage, CredentialsBesideFdsHarmNothing) {
  SocketPair pair;
  int on = 1;
  ASSERT_EQ(::setsockopt(pair.b.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
  UniqueFd file = Memfd("x");
  int raw[] = {file.get()};
  ASSERT_TRUE(SendPacket(pair.a.get(), Text("x"), raw).ok());
  absl::StatusOr<Packet> packet = ReceivePacket(pair.b.get());
  ASSERT_TRUE(packet.ok());
  EXPECT_EQ(packet->fds.size(), 1u);
}

// Runs `body` in a child with room for only `spare` more descriptors; the child's exit code.
template <class Body>
int WithFewFds(int spare, Body body) {
  pid_t child = ::fork();
  if (child == 0) {
    int last = 0;
    for (int fd = 0; fd < 1024; ++fd) last = ::fcntl(fd, F_GETFD) >= 0 ? fd : last;
    int highest = 0;
    while (highest <= last) highest = ::dup(0);  // fills the gaps that whoever started this left
    ::close(highest);
    rlimit limit = {static_cast<rlim_t>(highest + spare), static_cast<rlim_t>(highest + spare)};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(99);
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(FdMessage, ReceiverWithoutRoomForAllFdsIsTold) {
  for (int spare : {0, 1, 3}) {
    SocketPair pair;
    UniqueFd file = Memfd("x");
    std::vector<int> raw(4, file.get());
    Grant grant = NewFrame<Grant>();
    ASSERT_TRUE(SendPacket(pair.a.get(), AsBytes(grant), raw).ok());
    int code = WithFewFds(spare, [&] {
      absl::StatusOr<Packet> packet = ReceivePacket(pair.b.get());
      if (!packet.ok()) return 1;
      if (!packet->fds_truncated) return 2;
      if (packet->bytes.size() != sizeof(Grant)) return 3;
      for (const UniqueFd& fd : packet->fds) {
        if (::fcntl(fd.get(), F_GETFD) < 0) return 4;
      }
      return 10 + static_cast<int>(packet->fds.size());
    });
    EXPECT_EQ(code, 10 + spare) << "with room for " << spare << " of 4";
  }
}

TEST(FdMessage, ReceiverWithJustEnoughRoomGetsAll) {
  SocketPair pair;
  UniqueFd file = Memfd("x");
  std::vector<int> raw(4, file.get());
  ASSERT_TRUE(SendPacket(pair.a.get(), Text("x"), raw).ok());
  int code = WithFewFds(4, [&] {
    absl::StatusOr<Packet> packet = ReceivePacket(pair.b.get());
    return packet.ok() && packet->fds.size() == 4 && !packet->fds_truncated ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace ub::wire
