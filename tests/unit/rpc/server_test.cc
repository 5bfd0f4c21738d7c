// The RPC server with a real Broker, over a socket pair: what becomes of calls whose callers go away at the worst
// moment.
#include "tests/unit/rpc/server_fixture.h"

namespace ubd {
namespace {

TEST_F(RpcServerTest, AcquireAnswersAfterDelivery) {
  auto context = Context();
  ASSERT_TRUE(Acquire(*context, 1, 2).ok());
  EXPECT_NE(lease_, 0u);
  EXPECT_EQ(broker_.Pools()[0].leased, 2u);
  Eventually([&] { return metrics_.Seen("Broker.Acquire OK") == 1; });  // counted after the answer is out
}

TEST_F(RpcServerTest, CallerGoneWhileItWaitsTakesNothing) {
  auto first = Context();
  ASSERT_TRUE(Acquire(*first, 1, 4).ok());
  LeaseId held(lease_);
  auto second = Context(absl::Milliseconds(50));
  EXPECT_EQ(Acquire(*second, 2, 1, 60000).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  Eventually([&] { return broker_.Pools()[0].waiters == 0; });
  ASSERT_TRUE(broker_.Release(SessionId(1), held).ok());
  Eventually([&] { return AllFree(); });
}

TEST_F(RpcServerTest, CallerGoneDuringDeliveryLosesTheLease) {
  session_->Hold();
  auto context = Context();
  std::thread cancel([&] {
    session_->WaitForHeld();
    context->TryCancel();
  });
  EXPECT_EQ(Acquire(*context, 1, 3).error_code(), grpc::StatusCode::CANCELLED);
  cancel.join();
  Eventually([&] {
    return broker_.Leases({true, Uid(0)}).empty() || broker_.Leases({true, Uid(0)})[0].state == "draining";
  });
  session_->FinishHeld(absl::OkStatus());  // too late for anybody
  Eventually([&] { return AllFree(); });
}

TEST_F(RpcServerTest, FailedDeliveryIsTheAnswer) {
  session_->Hold();
  std::thread fail([&] {
    session_->WaitForHeld();
    session_->FinishHeld(
        ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kDaemonFdLimit, "no descriptors"));
  });
  auto context = Context();
  grpc::Status status = Acquire(*context, 1, 1);
  fail.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonText(status), "DAEMON_FD_LIMIT");
}

TEST_F(RpcServerTest, RetryThatTookOverIsNotAbandonedByTheFirstCaller) {
  auto holder = Context();
  ASSERT_TRUE(Acquire(*holder, 1, 4).ok());
  uint64_t held = lease_;
  auto first = Context();
  auto second = Context();
  std::thread superseded([&] { EXPECT_EQ(ReasonText(Acquire(*first, 2, 1, 60000)), "SUPERSEDED"); });
  Eventually([&] { return broker_.Pools()[0].waiters == 1; });
  std::thread retry([&] {
    ub::v1::AcquireRequest request;
    request.set_bytes(1);
    request.set_request_id(2);
    request.set_wait_ms(60000);
    ub::v1::AcquireResponse response;
    grpc::Status status = broker_stub_->Acquire(second.get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  });
  superseded.join();
  first->TryCancel();
  ASSERT_TRUE(broker_.Release(SessionId(1), LeaseId(held)).ok());
  // The retry is served once memory has settled.
  Eventually([&] { return broker_.Pools()[0].leased == 1; });
  retry.join();
  EXPECT_EQ(broker_.Pools()[0].leased, 1u);
}

TEST_F(RpcServerTest, UnknownConnectionIsRefusedEverywhere) {
  peers_.SetUid(std::nullopt);
  auto context = Context();
  EXPECT_EQ(Acquire(*context, 1, 1).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext admin;
  ub::v1::Status status;
  EXPECT_EQ(admin_stub_->GetStatus(&admin, {}, &status).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext watching;
  ub::v1::Event event;
  auto stream = admin_stub_->WatchAll(&watching, {});
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(RpcServerTest, TokenSentTwiceIsNoToken) {
  auto context = Context();
  context->AddMetadata("ub-token", FakePeers::kToken);
  EXPECT_EQ(ReasonText(Acquire(*context, 1, 1)), "NO_SESSION");
}

}  // namespace
}  // namespace ubd
