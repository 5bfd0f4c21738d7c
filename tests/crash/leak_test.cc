// Connections that come and go, properly or in the middle of a handshake, leave no descriptor behind in the daemon.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>

#include "proto/wire/fd_message.h"
#include "proto/wire/runtime_dir.h"
#include "tests/crash/crash_fixture.h"
#include "tests/integration/harness/raw_client.h"

namespace ubd::testing {
namespace {

class Leak : public CrashTest {
 protected:
  // The daemon closes on its own threads. Each look is a round trip through it; bounded.
  void ExpectBackTo(uint64_t baseline) {
    uint64_t fds = 0;
    absl::Time end = absl::Now() + kBound;
    do {
      fds = watch_->Status().fds_open();
    } while (fds > baseline && absl::Now() < end);
    EXPECT_LE(fds, baseline);
    EXPECT_LE(daemon_->facts().fds, baseline + 1);
  }
};

TEST_F(Leak, ThousandsOfStatusCallsEachOverItsOwnConnection) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/4, /*open_to_all=*/false));
  const uint64_t baseline = watch_->Status().fds_open();
  ASSERT_GT(baseline, 0u);
  const int calls = Rounds() * 25;  // 5,000 in 200 rounds
  for (int i = 0; i < calls; ++i) {
    auto channel = RawChannel(daemon_->runtime_dir());
    ASSERT_TRUE(channel.ok()) << channel.status();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    ub::v1::Status status;
    grpc::Status called = ub::v1::Admin::NewStub(*channel)->GetStatus(&context, {}, &status);
    ASSERT_TRUE(called.ok()) << "call " << i << ": " << called.error_message();
  }
  ExpectBackTo(baseline);
}

TEST_F(Leak, ConnectionsClosedInTheMiddleOfAHandshake) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/4, /*open_to_all=*/false));
  const uint64_t baseline = watch_->Status().fds_open();
  auto hello = ub::wire::NewFrame<ub::wire::Hello>();
  const auto bytes = ub::wire::AsBytes(hello);
  const char preface[] = "PRI * HTTP/2.0\r\n";
  for (int i = 0; i < 1000; ++i) {
    auto lifeline = ConnectRaw(daemon_->runtime_dir(), ub::kLifelineSocketName, SOCK_SEQPACKET);
    auto rpc = ConnectRaw(daemon_->runtime_dir(), ub::kRpcSocketName, SOCK_STREAM);
    ASSERT_TRUE(lifeline.ok() && rpc.ok()) << lifeline.status() << rpc.status();
    // Nothing, half a frame, or all of it and gone before the answer.
    if (i % 3 == 1) ub::wire::SendPacket(lifeline->get(), bytes.subspan(0, 20), {}).IgnoreError();
    if (i % 3 == 2) ub::wire::SendPacket(lifeline->get(), bytes, {}).IgnoreError();
    if (i % 2 == 1) send(rpc->get(), preface, sizeof preface - 1, MSG_NOSIGNAL);
  }
  ExpectBackTo(baseline);
  EXPECT_EQ(watch_->Status().sessions(), 0u);
  EXPECT_TRUE(watch_->AllFree());
}

}  // namespace
}  // namespace ubd::testing
