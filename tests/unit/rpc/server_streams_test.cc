// The RPC server: who may what, what watchers see, and how everything ends.
#include "tests/unit/rpc/server_fixture.h"

namespace ubd {
namespace {

TEST_F(RpcServerTest, DrainIsForAdmins) {
  ub::v1::SetDrainRequest request;
  request.set_drain(true);
  ub::v1::SetDrainResponse response;
  grpc::ClientContext plain;
  EXPECT_EQ(ReasonText(admin_stub_->SetDrain(&plain, request, &response)), "NOT_ADMIN");
  EXPECT_FALSE(broker_.Totals().draining);
  peers_.SetUid(Uid(0));
  grpc::ClientContext root;
  EXPECT_TRUE(admin_stub_->SetDrain(&root, request, &response).ok());
  EXPECT_TRUE(broker_.Totals().draining);
}

TEST_F(RpcServerTest, WatchShowsOnlyTheSessionsOwnEventsAndEndsWithIt) {
  auto context = Context();
  auto stream = broker_stub_->Watch(context.get(), {});
  ub::v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), ub::v1::Event::WATCHING);
  SessionFacts other;
  other.id = SessionId(2);
  other.uid = Uid(1000);
  broker_.OpenSession(other);
  broker_.CloseSession(SessionId(2), SessionEnd::kHangUp);
  auto acquire = Context();
  ASSERT_TRUE(Acquire(*acquire, 1, 1).ok());
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), ub::v1::Event::GRANTED);
  EXPECT_EQ(event.lease(), lease_);
  peers_.SetSession(nullptr);
  broker_.CloseSession(SessionId(1), SessionEnd::kHangUp);
  while (stream->Read(&event)) EXPECT_EQ(event.session(), 1u);
  grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ReasonText(status), "SESSION_ENDED");
}

TEST_F(RpcServerTest, SlowReaderIsToldWhatItMissed) {
  peers_.SetUid(Uid(0));
  grpc::ClientContext context;
  auto stream = admin_stub_->WatchAll(&context, {});
  ub::v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  // Far more than the queue and all buffers hold.
  for (uint64_t i = 0; i < 20000; ++i) {
    events_->OnEvent({.kind = EventKind::kRecycled, .text = std::string(64, 'x')});
  }
  uint64_t missed = 0;
  uint64_t last = 0;
  while (missed == 0) {
    ASSERT_TRUE(stream->Read(&event));
    EXPECT_GT(event.seq(), last);
    last = event.seq();
    missed = event.missed();
  }
  context.TryCancel();
}

TEST_F(RpcServerTest, ShutdownTellsStreamsWhyAndWaitsForNobody) {
  auto context = Context();
  auto stream = broker_stub_->Watch(context.get(), {});
  ub::v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  session_->Hold();
  auto acquiring = Context();
  std::thread caller([&] { EXPECT_EQ(Acquire(*acquiring, 1, 1).error_code(), grpc::StatusCode::UNAVAILABLE); });
  session_->WaitForHeld();  // never answered by the session
  absl::Time begin = absl::Now();
  server_->Shutdown("the test says so", absl::Milliseconds(200));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  caller.join();
  while (stream->Read(&event)) EXPECT_EQ(event.session(), 1u);
  grpc::Status status = stream->Finish();
  EXPECT_EQ(ReasonText(status), "STOPPING");
  EXPECT_THAT(status.error_message(), testing::HasSubstr("the test says so"));
}

TEST_F(RpcServerTest, ShutdownUnderFireFreesEveryCallOnce) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      auto stub = ub::v1::Broker::NewStub(Connect());
      for (uint64_t n = 0; !stop; ++n) {
        auto context = Context(absl::Microseconds(50 + 300 * (n % 10)));
        ub::v1::AcquireRequest request;
        request.set_bytes(1);
        request.set_request_id(n << 8 | static_cast<uint64_t>(i));
        request.set_wait_ms(5);
        ub::v1::AcquireResponse response;
        if (n % 7 == 0) {
          auto stream = stub->Watch(context.get(), {});
          ub::v1::Event event;
          while (stream->Read(&event)) {
          }
          stream->Finish();
        } else {
          if (!stub->Acquire(context.get(), request, &response).ok()) continue;
          auto releasing = Context();
          ub::v1::ReleaseRequest release;
          release.set_request_id(request.request_id());
          ub::v1::ReleaseResponse released;
          stub->Release(releasing.get(), release, &released);
        }
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    memory_.Settle(broker_);
    broker_.Tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  server_->Shutdown("enough", absl::Milliseconds(50));
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace ubd
