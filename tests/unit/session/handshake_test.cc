#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/session/handshakes.h"
#include "proto/wire/error.h"
#include "proto/wire/frame.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/version.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {
namespace {

using ub::UniqueFd;
using ub::wire::AsBytes;
using ub::wire::Hello;
using ub::wire::Refuse;
using ub::wire::SendPacket;

std::string ReasonIn(const Refuse& refuse) { return ub::wire::GetText(refuse.reason); }

// A lifeline that said `bytes`.
UniqueFd Say(const TestDaemon& daemon, absl::Span<const std::byte> bytes, const std::vector<int>& fds = {}) {
  UniqueFd fd = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
  EXPECT_TRUE(SendPacket(fd.get(), bytes, fds).ok());
  return fd;
}

TEST(Handshake, ClientIsNotWelcome) {
  TestDaemon daemon;
  auto client = Join(daemon.lifeline(), "loader");
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_GT(client->welcome.session, 0u);
  EXPECT_NE(client->welcome.boot_id, 0u);
  EXPECT_EQ(client->welcome.word_count, ub::wire::kWordsPerSession);
  EXPECT_TRUE(client->page.valid());
  auto session = daemon.server().registry().Find(client->token_hex(), Uid(::getuid()));
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->facts().pid, ::getpid());
  EXPECT_EQ(session->facts().name, "loader");
  EXPECT_TRUE(daemon.events().WaitFor(EventKind::kSessionOpened, client->id()));
}

TEST(Handshake, TokenWorksForOthersOrGuessed) {
  TestDaemon daemon;
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  auto& registry = daemon.server().registry();
  EXPECT_NE(registry.Find(absl::AsciiStrToUpper(client->token_hex()), Uid(::getuid())), nullptr);
  EXPECT_EQ(registry.Find(client->token_hex(), Uid(::getuid() + 1)), nullptr) << "another uid";
  std::string guess = client->token_hex();
  guess.back() = guess.back() == '0' ? '1' : '0';
  EXPECT_EQ(registry.Find(guess, Uid(::getuid())), nullptr);
  for (std::string bad : {std::string(), client->token_hex() + "0", std::string(32, 'g'), std::string(31, 'a')}) {
    EXPECT_EQ(registry.Find(bad, Uid(::getuid())), nullptr) << bad;
  }
  auto second = Join(daemon.lifeline());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->token_hex(), client->token_hex());
  EXPECT_NE(second->welcome.session, client->welcome.session);
  EXPECT_EQ(second->welcome.boot_id, client->welcome.boot_id);
}

TEST(Handshake, NamelessClientHasNoName) {
  TestDaemon daemon;
  auto client = Join(daemon.lifeline(), "");
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(daemon.Find(*client)->facts().name, std::string("session_handshake_test").substr(0, 15));
}

TEST(Handshake, OtherVersionIsServedOrNotTold) {
  TestDaemon daemon;
  for (int step : {-1, +1}) {
    auto hello = ub::wire::NewFrame<Hello>();
    hello.header.protocol = ub::ProtocolVersion() + step;
    UniqueFd fd = Say(daemon, AsBytes(hello));
    auto refuse = ReceiveFrame<Refuse>(fd.get());
    ASSERT_TRUE(refuse.ok()) << refuse.status();
    EXPECT_EQ(ReasonIn(*refuse), "VERSION_MISMATCH");
    EXPECT_EQ(refuse->code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(refuse->daemon_protocol, ub::ProtocolVersion());
    const std::string text = ub::wire::GetText(refuse->text);
    EXPECT_NE(text.find(absl::StrCat("client speaks protocol ", hello.header.protocol)), std::string::npos) << text;
    EXPECT_NE(text.find(absl::StrCat("daemon speaks ", ub::ProtocolVersion())), std::string::npos) << text;
    EXPECT_NE(text.find(step > 0 ? "upgrade ubd and restart it" : "client is older: restart it"), std::string::npos)
        << text;
    EXPECT_TRUE(HungUp(fd.get()));
  }
  EXPECT_EQ(daemon.sessions(), 0u);
}

// Refused before the Hello was read, and the reason must still arrive, not a reset.
TEST(Handshake, RefusalIsLostInAReset) {
  DaemonOptions options;
  options.limits.handshake_timeout = absl::ZeroDuration();
  TestDaemon daemon(options);
  for (int i = 0; i < 200; ++i) {
    UniqueFd fd = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
    (void)SendHello(fd.get());
    auto packet = Receive(fd.get());
    ASSERT_TRUE(packet.ok()) << i << packet.status();
    EXPECT_FALSE(packet->bytes.empty());
  }
}

TEST(Handshake, GarbageMakesASession) {
  TestDaemon daemon;
  auto good = ub::wire::NewFrame<Hello>();
  auto bad_magic = good, bad_size = good, reserved = good;
  bad_magic.header.magic ^= 1;
  bad_size.header.size += 1;
  reserved.header.reserved = 1;
  auto wrong_type = ub::wire::NewFrame<ub::wire::Grant>();
  std::vector<std::byte> longer(sizeof(good) + 1), huge(ub::wire::kMaxFrameBytes + 1), tiny(1), enormous(60000);
  std::memcpy(longer.data(), &good, sizeof(good));
  const std::vector<absl::Span<const std::byte>> packets = {
      AsBytes(bad_magic), AsBytes(bad_size), AsBytes(reserved), AsBytes(wrong_type), longer, huge, tiny, enormous};
  const size_t fds_before = OpenFdCount();
  for (size_t i = 0; i < packets.size(); ++i) {
    UniqueFd fd = Say(daemon, packets[i]);
    auto refuse = ReceiveFrame<Refuse>(fd.get());
    ASSERT_TRUE(refuse.ok()) << i << refuse.status();
    EXPECT_EQ(ReasonIn(*refuse), "MALFORMED_FRAME") << i;
    EXPECT_TRUE(HungUp(fd.get()));
  }
  EXPECT_TRUE(Join(daemon.lifeline()).ok());
  EXPECT_EQ(daemon.events().Count(EventKind::kSessionOpened), 1u);
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() == fds_before; }));
}

TEST(Handshake, UnexpectedDescriptorsStayOpen) {
  TestDaemon daemon;
  const size_t before = OpenFdCount();
  auto hello = ub::wire::NewFrame<Hello>();
  {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    for (size_t count : {size_t{1}, size_t{2}, ub::wire::kMaxFdsPerFrame}) {
      UniqueFd fd = Say(daemon, AsBytes(hello), std::vector<int>(count, null.get()));
      EXPECT_TRUE(ReceiveFrame<ub::wire::Welcome>(fd.get()).ok()) << "none is needed, none was taken: " << count;
    }
    // With a frame that is refused anyway, and with one that is too long.
    std::vector<std::byte> huge(ub::wire::kMaxFrameBytes + 1);
    UniqueFd fd = Say(daemon, huge, std::vector<int>(ub::wire::kMaxFdsPerFrame, null.get()));
    EXPECT_TRUE(ReceiveFrame<Refuse>(fd.get()).ok());
  }
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() == before; })) << OpenFdCount() << " of " << before;
}

TEST(Handshake, ClientsOwnPidfdIsRefused) {
  TestDaemon daemon;
  UniqueFd fd = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  ASSERT_TRUE(SendHello(fd.get(), "inside", {pidfd.get()}).ok());
  EXPECT_TRUE(ReceiveFrame<ub::wire::Welcome>(fd.get()).ok());
}

TEST(Handshake, BrokersDeadlinesAreMissed) {
  DaemonOptions options;
  options.blocks = 1;
  TestDaemon daemon(options);
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(daemon.AcquireNow(client->id(), 1).ok());
  AcquireRequest request;
  request.session = client->id();
  request.bytes = ub::MiB(2);
  request.request = RequestId(99);
  request.wait = absl::Milliseconds(100);
  std::atomic<bool> timed_out{false};
  const absl::Time start = absl::Now();
  daemon.broker().Acquire(request, [&](absl::StatusOr<Grant> grant) {
    timed_out = ub::ReasonOf(grant.status()) == ub::Reason::kWaitTimeout;
  });
  EXPECT_TRUE(Eventually([&] { return timed_out.load(); }));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(99));
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
}

TEST(Handshake, HalfHelloThenHangUpLeaks) {
  TestDaemon daemon;
  ASSERT_TRUE(Join(daemon.lifeline()).ok());
  ASSERT_TRUE(Eventually([&] { return daemon.sessions() == 0; }));
  const size_t before = OpenFdCount();
  for (int i = 0; i < 1000; ++i) {
    UniqueFd fd = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
    ASSERT_TRUE(fd.valid());
    if (i % 2 == 0) (void)SendHello(fd.get());
  }
  EXPECT_TRUE(Eventually([&] { return daemon.sessions() == 0 && OpenFdCount() <= before; })) << OpenFdCount();
}

TEST(Handshake, SilentLifelineStays) {
  DaemonOptions options;
  options.limits.handshake_timeout = absl::Milliseconds(200);
  TestDaemon daemon(options);
  UniqueFd silent = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
  EXPECT_FALSE(HungUp(silent.get(), absl::Milliseconds(100)));
  EXPECT_TRUE(HungUp(silent.get(), absl::Seconds(5)));
  auto refuse = ReceiveFrame<Refuse>(silent.get());
  ASSERT_TRUE(refuse.ok());
  EXPECT_EQ(ReasonIn(*refuse), "WAIT_TIMEOUT");
}

TEST(Handshake, SilentFloodLocksOthersOut) {
  TestDaemon daemon;
  const size_t before = OpenFdCount();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 2000; ++i) silent.push_back(ConnectTo(daemon.lifeline(), SOCK_SEQPACKET));
  // The same user can still come in, at once, and what the flood holds is bounded.
  const absl::Time start = absl::Now();
  EXPECT_TRUE(Join(daemon.lifeline()).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  const size_t own = silent.size();
  EXPECT_LE(OpenFdCount() - before - own, 2 * Handshakes::kMostPerUid + 16);
  size_t refused = 0;
  for (auto& fd : silent) refused += HungUp(fd.get(), absl::ZeroDuration()) ? 1 : 0;
  EXPECT_GE(refused, silent.size() - Handshakes::kMostPerUid);
  silent.clear();
  EXPECT_TRUE(Eventually([&] { return OpenFdCount() <= before; }));
}

TEST(Handshake, SessionLimitsDoNotHold) {
  DaemonOptions options;
  options.limits.max_sessions = 5;
  options.limits.max_sessions_per_uid = 3;
  TestDaemon daemon(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(*Join(daemon.lifeline()));
  UniqueFd fourth = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
  ASSERT_TRUE(SendHello(fourth.get()).ok());
  auto refuse = ReceiveFrame<Refuse>(fourth.get());
  ASSERT_TRUE(refuse.ok());
  EXPECT_EQ(ReasonIn(*refuse), "TOO_MANY_SESSIONS");
  clients.pop_back();
  EXPECT_TRUE(Eventually([&] { return Join(daemon.lifeline()).ok(); })) << "a place that was given up is free again";
  options.limits.max_sessions_per_uid = 100;
  daemon.server().SetLimits(options.limits);
  while (clients.size() < 5) {
    auto client = Join(daemon.lifeline());
    if (client.ok()) clients.push_back(*std::move(client));
  }
  EXPECT_FALSE(Join(daemon.lifeline()).ok()) << "the limit for all";
}

TEST(Handshake, StoppingDaemonWelcomes) {
  TestDaemon daemon;
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  UniqueFd silent = ConnectTo(daemon.lifeline(), SOCK_SEQPACKET);
  daemon.CloseListeners();
  daemon.server().Stop(absl::Seconds(30));
  EXPECT_TRUE(HungUp(silent.get()));
  EXPECT_FALSE(HungUp(client->lifeline.get(), absl::Milliseconds(50))) << "who is in may finish";
  EXPECT_FALSE(ConnectTo(daemon.lifeline(), SOCK_SEQPACKET).valid()) << "listeners are closed";
  client->lifeline.reset();
  const absl::Time start = absl::Now();
  daemon.StopAndJoin(absl::Seconds(30));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10)) << "the last session ended; no need to wait for the grace";
}

TEST(Handshake, GraceIsNotKept) {
  TestDaemon daemon;
  auto client = Join(daemon.lifeline());
  ASSERT_TRUE(client.ok());
  const absl::Time start = absl::Now();
  daemon.StopAndJoin(absl::Milliseconds(200));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(190));
  EXPECT_TRUE(HungUp(client->lifeline.get()));
  EXPECT_EQ(daemon.sessions(), 0u);
}

TEST(Handshake, IdleDaemonWakesUp) {
  TestDaemon daemon;
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(*Join(daemon.lifeline()));
  // Until it has put away what the joins left, however long that takes on a busy machine.
  uint64_t before = 0;
  ASSERT_TRUE(Eventually([&] {
    before = daemon.LoopSleeps();
    absl::SleepFor(absl::Milliseconds(200));
    return daemon.LoopSleeps() == before;
  }));
  absl::SleepFor(absl::Seconds(1));
  EXPECT_EQ(daemon.LoopSleeps(), before);
}

}  // namespace
}  // namespace ubd::testing
