// The RPC server with a real Broker, over a socket pair.
#ifndef UBD_TESTS_UNIT_RPC_SERVER_FIXTURE_H_
#define UBD_TESTS_UNIT_RPC_SERVER_FIXTURE_H_

#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "daemon/rpc/server.h"
#include "proto/wire/error.h"
#include "tests/unit/rpc/fake_engine.h"
#include "tests/unit/rpc/fakes.h"
#include "ub/v1/admin.grpc.pb.h"
#include "ub/v1/broker.grpc.pb.h"
#include "ub/v1/error.pb.h"

namespace ubd {

inline const PoolSpec kPool{"host", "host", ub::MiB(2), 4, Isolation::kPerUid};

inline std::string ReasonText(const grpc::Status& status) {
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
        server_(RpcServer::Create({broker_, memory_, *events_, metrics_, engine_,
                                   [](Uid uid, Gid, int32_t) { return uid.value() == 0; }, clock_})) {
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
  FakeEngine engine_;
  std::unique_ptr<EventHub> events_;
  Broker broker_;
  FakePeers peers_;
  std::shared_ptr<FakeSession> session_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<ub::v1::Broker::Stub> broker_stub_;
  std::unique_ptr<ub::v1::Admin::Stub> admin_stub_;
  uint64_t lease_ = 0;
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_RPC_SERVER_FIXTURE_H_
