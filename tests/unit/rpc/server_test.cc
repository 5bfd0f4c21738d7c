// The RPC server with a real Broker, over a socket pair: what becomes of calls whose callers go away at the worst
// moment.
#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "proto/wire/error.h"
#include "tests/unit/rpc/fakes.h"
#include "ub/v1/admin.grpc.pb.h"
#include "ub/v1/broker.grpc.pb.h"
#include "ub/v1/error.pb.h"

namespace ubd {
namespace {

const PoolSpec kPool{"host", "host", ub::MiB(2), 4, Isolation::kPerUid};

std::string ReasonText(const grpc::Status& status) {
  ub::v1::StatusDetails details;
  ub::v1::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() != 1) return "";
  info.ParseFromString(details.details(0).value());
  return info.reason();
}

class RpcServerTest : public testing::Test {
 protected:
  RpcServerTest()
      : events_(EventHub::Create()),
        broker_({kPool}, BrokerLimits{},
                {clock_, memory_, words_, *events_,
                 [](absl::Span<uint8_t> out) { std::fill(out.begin(), out.end(), uint8_t{7}); }}),
        session_(std::make_shared<FakeSession>(FactsOfSession())),
        server_(RpcServer::Create(
            {broker_, memory_, *events_, metrics_, [](Uid uid, Gid, int32_t) { return uid.value() == 0; }, clock_})) {
    broker_.OpenSession(session_->facts());
    peers_.SetSession(session_);
    server_->Attach(peers_, peers_);
    broker_stub_ = ub::v1::Broker::NewStub(Connect());
    admin_stub_ = ub::v1::Admin::NewStub(Connect());
  }
  ~RpcServerTest() override {
    session_->FinishHeld(absl::CancelledError("test over"));
    server_ = nullptr;
  }

  static SessionFacts FactsOfSession() {
    SessionFacts facts;
    facts.id = SessionId(1);
    facts.uid = Uid(1000);
    return facts;
  }

  std::shared_ptr<grpc::Channel> Connect() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server_->ServeFd(ends[0]);
    return grpc::CreateInsecureChannelFromFd("test", ends[1]);
  }

  static std::unique_ptr<grpc::ClientContext> Context(absl::Duration deadline = absl::Seconds(10)) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("ub-token", FakePeers::kToken);
    context->set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    return context;
  }

  grpc::Status Acquire(grpc::ClientContext& context, uint64_t request_id, uint64_t blocks, uint64_t wait_ms = 0) {
    ub::v1::AcquireRequest request;
    request.set_bytes(blocks * kPool.block_bytes.count());
    request.set_request_id(request_id);
    request.set_wait_ms(wait_ms);
    ub::v1::AcquireResponse response;
    grpc::Status status = broker_stub_->Acquire(&context, request, &response);
    lease_ = response.lease().id();
    return status;
  }

  // Until `holds`; memory settles meanwhile, as it does by itself in a real daemon.
  void Eventually(const std::function<bool()>& holds) {
    absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!holds()) {
      ASSERT_LT(absl::Now(), deadline);
      memory_.Settle(broker_);
      std::this_thread::yield();
    }
  }
  bool AllFree() { return broker_.Pools()[0].free == kPool.blocks; }

  SystemClock clock_;
  FakeMemory memory_{kPool};
  NoWords words_;
  CountingMetrics metrics_;
  std::unique_ptr<EventHub> events_;
  Broker broker_;
  FakePeers peers_;
  std::shared_ptr<FakeSession> session_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<ub::v1::Broker::Stub> broker_stub_;
  std::unique_ptr<ub::v1::Admin::Stub> admin_stub_;
  uint64_t lease_ = 0;
};

TEST_F(RpcServerTest, AcquireAnswersAfterDelivery) {
  auto context = Context();
  ASSERT_TRUE(Acquire(*context, 1, 2).ok());
  EXPECT_NE(lease_, 0u);
  EXPECT_EQ(broker_.Pools()[0].leased, 2u);
  EXPECT_EQ(metrics_.Seen("Broker.Acquire OK"), 1);
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
