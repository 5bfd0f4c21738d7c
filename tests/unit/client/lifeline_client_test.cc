// The handshake against a scripted peer, and connecting against sockets in every bad state.
#include "client/src/lifeline_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "client/src/connect_socket.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "proto/wire/version.h"
#include "tests/unit/client/test_memory.h"

namespace ub {
namespace {

class LifelineTest : public testing::Test {
 protected:
  LifelineTest() {
    char name[] = "/tmp/ub-lifeline-test.XXXXXX";
    dir_ = ::mkdtemp(name);
    path_ = dir_ + "/lifeline.sock";
  }
  ~LifelineTest() override {
    if (peer_.joinable()) peer_.join();
    ::unlink(path_.c_str());
    ::rmdir(dir_.c_str());
  }
  void Listen(int backlog) {
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(listener_.get(), backlog), 0);
  }
  // Accepts one client, reads its Hello, and does what the script says.
  void Peer(std::function<void(int fd)> script) {
    Listen(4);
    peer_ = std::thread([this, script = std::move(script)] {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::byte hello[wire::kMaxFrameBytes];
      ASSERT_EQ(::recv(fd.get(), hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(wire::Hello)));
      script(fd.get());
    });
  }
  wire::Welcome MakeWelcome() {
    auto welcome = wire::NewFrame<wire::Welcome>();
    welcome.session = 42;
    welcome.token = {0xab, 1};
    welcome.word_count = wire::kWordsPerSession;
    return welcome;
  }
  static void Send(int fd, absl::Span<const std::byte> bytes, absl::Span<const int> fds = {}) {
    ASSERT_TRUE(wire::SendPacket(fd, bytes, fds).ok());
  }
  absl::StatusOr<std::unique_ptr<LifelineClient>> Connect(absl::Duration deadline = absl::Seconds(5)) {
    return LifelineClient::Connect(dir_, "test", Deadline::After(deadline));
  }

  std::string dir_;
  std::string path_;
  UniqueFd listener_;
  std::thread peer_;
  TestPage page_;
};

TEST_F(LifelineTest, SessionOrTokenMisread) {
  Peer([this](int fd) {
    int page = page_.fd();
    Send(fd, wire::AsBytes(MakeWelcome()), absl::Span<const int>(&page, 1));
  });
  absl::StatusOr<std::unique_ptr<LifelineClient>> client = Connect();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->session(), SessionId(42));
  EXPECT_EQ((*client)->token(), "ab010000000000000000000000000000");
  EXPECT_NE((*client)->words().word(254), nullptr);
  EXPECT_EQ((*client)->words().word(255), nullptr);
  EXPECT_TRUE((::fcntl((*client)->fd(), F_GETFD) & FD_CLOEXEC) != 0);
  EXPECT_TRUE((::fcntl((*client)->fd(), F_GETFL) & O_NONBLOCK) != 0);
}

TEST_F(LifelineTest, VersionsNotNamed) {
  for (int step : {-1, 1}) {
    uint32_t theirs = ProtocolVersion() + static_cast<uint32_t>(step);
    Peer([theirs](int fd) {
      auto refuse = wire::NewFrame<wire::Refuse>();
      refuse.header.protocol = theirs;
      refuse.daemon_protocol = theirs;
      refuse.code = static_cast<int32_t>(absl::StatusCode::kFailedPrecondition);
      wire::SetText(refuse.reason, "VERSION_MISMATCH");
      Send(fd, wire::AsBytes(refuse));
    });
    absl::Status status = Connect().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(status), Reason::kVersionMismatch);
    EXPECT_EQ(DetailOf(status, "client"), std::to_string(ProtocolVersion()));
    EXPECT_EQ(DetailOf(status, "daemon"), std::to_string(theirs));
    std::string text(status.message());
    EXPECT_NE(text.find("restart"), std::string::npos) << text;
    EXPECT_EQ(text.find("upgrade ubd") != std::string::npos, step < 0) << text;
    peer_.join();
    ::unlink(path_.c_str());
  }
}

TEST_F(LifelineTest, WelcomeOfAnotherVersionTaken) {
  Peer([this](int fd) {
    wire::Welcome welcome = MakeWelcome();
    welcome.header.protocol = ProtocolVersion() + 1;
    int page = page_.fd();
    Send(fd, wire::AsBytes(welcome), absl::Span<const int>(&page, 1));
  });
  absl::Status status = Connect().status();
  EXPECT_EQ(ReasonOf(status), Reason::kVersionMismatch);
  EXPECT_EQ(DetailOf(status, "daemon"), std::to_string(ProtocolVersion() + 1));
}

TEST_F(LifelineTest, RefusalTurnedIntoSomethingElse) {
  Peer([](int fd) {
    auto refuse = wire::NewFrame<wire::Refuse>();
    refuse.code = static_cast<int32_t>(absl::StatusCode::kResourceExhausted);
    wire::SetText(refuse.reason, "TOO_MANY_SESSIONS");
    wire::SetText(refuse.text, "close some");
    Send(fd, wire::AsBytes(refuse));
  });
  absl::Status status = Connect().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kTooManySessions);
  EXPECT_EQ(status.message(), "close some");
}

TEST_F(LifelineTest, RefusalWithCodeOkOrUnknownIsNoError) {
  for (int32_t code : {0, -1, 17, INT32_MAX}) {
    Peer([code](int fd) {
      auto refuse = wire::NewFrame<wire::Refuse>();
      refuse.code = code;
      Send(fd, wire::AsBytes(refuse));
    });
    EXPECT_FALSE(Connect().ok()) << code;
    peer_.join();
    ::unlink(path_.c_str());
  }
}

TEST_F(LifelineTest, SilentDaemonBlocksForever) {
  Listen(4);
  absl::Time start = absl::Now();
  EXPECT_EQ(ReasonOf(Connect(absl::Milliseconds(100)).status()), Reason::kNotAnswering);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
}

TEST_F(LifelineTest, GarbageAccepted) {
  std::vector<std::function<void(int)>> scripts = {
      [](int fd) { Send(fd, wire::AsBytes(std::array<char, 3>{})); },
      [](int fd) { Send(fd, wire::AsBytes(std::array<char, 500>{})); },
      [this](int fd) { Send(fd, wire::AsBytes(MakeWelcome())); },  // without its page
      [this](int fd) {
        int two[] = {page_.fd(), page_.fd()};
        Send(fd, wire::AsBytes(MakeWelcome()), two);
      },
      [](int fd) { Send(fd, wire::AsBytes(wire::NewFrame<wire::Grant>())); },
      [this](int fd) {
        wire::Welcome welcome = MakeWelcome();
        welcome.word_count = wire::kWordsPerSession + 1;
        int page = page_.fd();
        Send(fd, wire::AsBytes(welcome), absl::Span<const int>(&page, 1));
      },
      [this](int fd) {
        UniqueFd unsealed = MakeMemfd(wire::kLeasePageBytes, 0);
        int page = unsealed.get();
        Send(fd, wire::AsBytes(MakeWelcome()), absl::Span<const int>(&page, 1));
      },
      [this](int fd) {
        UniqueFd empty = MakeMemfd(wire::kLeasePageBytes);  // no magic
        int page = empty.get();
        Send(fd, wire::AsBytes(MakeWelcome()), absl::Span<const int>(&page, 1));
      },
      [](int) {},  // hangs up
  };
  for (auto& script : scripts) {
    Peer(script);
    EXPECT_FALSE(Connect().ok());
    peer_.join();
    ::unlink(path_.c_str());
  }
}

TEST_F(LifelineTest, NotRunningAndNotAnsweringMixedUp) {
  EXPECT_EQ(ReasonOf(Connect().status()), Reason::kNotRunning);
  EXPECT_EQ(ReasonOf(LifelineClient::Connect(dir_ + "/none", "x", Deadline::After(absl::Seconds(1))).status()),
            Reason::kNotRunning);
  Listen(4);
  listener_.reset();  // as after SIGKILL: the file stays
  EXPECT_EQ(ReasonOf(Connect().status()), Reason::kNotRunning);
}

TEST_F(LifelineTest, FullBacklogFailsAtOnceOrBlocksForever) {
  Listen(0);
  std::vector<UniqueFd> fill;
  absl::Status full;
  absl::Time start = absl::Now();
  while (full.ok() && fill.size() < 100) {
    auto fd = ConnectSocket(dir_, "lifeline.sock", SOCK_SEQPACKET, absl::Now() + absl::Milliseconds(150));
    full = fd.status();
    if (fd.ok()) fill.push_back(*std::move(fd));
  }
  EXPECT_EQ(ReasonOf(full), Reason::kNotAnswering) << full;
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(140));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  // Room within the deadline is used.
  std::thread accepter([this] {
    ::usleep(50000);
    UniqueFd(::accept(listener_.get(), nullptr, nullptr));
  });
  auto fd = ConnectSocket(dir_, "lifeline.sock", SOCK_SEQPACKET, absl::Now() + absl::Seconds(10));
  EXPECT_TRUE(fd.ok()) << fd.status();
  accepter.join();
}

TEST_F(LifelineTest, NoAccessDoesNotSayWhere) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another uid";
  Listen(4);
  ::chmod(dir_.c_str(), 0755);
  ::chmod(path_.c_str(), 0660);
  auto as_nobody = [this](const std::string& part) {
    return InChild([&] {
      if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return 1;
      absl::Status status =
          ConnectSocket(dir_, "lifeline.sock", SOCK_SEQPACKET, absl::Now() + absl::Seconds(1)).status();
      if (ReasonOf(status) != Reason::kSocketAccess || status.code() != absl::StatusCode::kPermissionDenied) return 2;
      std::string text(status.message());
      return text.find(part) != std::string::npos && text.find("root") != std::string::npos ? 0 : 3;
    });
  };
  EXPECT_EQ(as_nobody(path_ + " (mode 0660"), 0);
  ::chmod(dir_.c_str(), 0700);
  EXPECT_EQ(as_nobody(dir_ + " (mode 0700"), 0);
}

TEST_F(LifelineTest, PathThatDoesNotFitCut) {
  absl::Status status =
      ConnectSocket("/tmp/" + std::string(120, 'x'), "lifeline.sock", SOCK_SEQPACKET, absl::Now()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ub
