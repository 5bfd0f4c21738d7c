// Queues, files, own memory and paths through the RPC server, over a fake engine.
#include <atomic>

#include "tests/unit/rpc/server_fixture.h"

namespace ubd {
namespace {

using grpc::StatusCode;

class RpcDataTest : public RpcServerTest {
 protected:
  template <class Method, class Request, class Response>
  grpc::Status Call(Method method, const Request& request, Response* response,
                    absl::Duration deadline = absl::Seconds(10)) {
    auto context = Context(deadline);
    return (broker_stub_.get()->*method)(context.get(), request, response);
  }
  grpc::Status OpenQueue(uint32_t entries, ub::v1::OpenQueueResponse* response) {
    ub::v1::OpenQueueRequest request;
    request.set_sq_entries(entries);
    request.set_policy(ub::v1::DIRECT_ONLY);
    return Call(&ub::v1::Broker::Stub::OpenQueue, request, response);
  }
  grpc::Status OpenFile(uint64_t offer, ub::v1::OpenFileResponse* response,
                        absl::Duration deadline = absl::Seconds(10)) {
    ub::v1::OpenFileRequest request;
    request.set_offer(offer);
    return Call(&ub::v1::Broker::Stub::OpenFile, request, response, deadline);
  }
};

TEST_F(RpcDataTest, QueueIsDeliveredBeforeTheAnswerAndClosed) {
  ub::v1::OpenQueueResponse opened;
  grpc::Status status = OpenQueue(64, &opened);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(session_->QueueGrants().size(), 1u);
  EXPECT_EQ(session_->QueueGrants()[0].queue, opened.queue());
  EXPECT_EQ(session_->QueueGrants()[0].cq_entries, 128u);
  EXPECT_EQ(opened.cq_entries(), 128u);
  EXPECT_EQ(opened.client_spin_ns(), static_cast<uint64_t>(absl::ToInt64Nanoseconds(engine_.options().client_spin)));
  EXPECT_EQ(opened.most_in_flight(), 1024u);
  EXPECT_EQ(opened.small_storage_bytes(), 256u << 10);
  EXPECT_EQ(opened.small_network_bytes(), 64u << 10);
  EXPECT_EQ(engine_.policy_of_last(), ub::wire::PathPolicy::kDirectOnly);
  ub::v1::CloseQueueRequest close;
  close.set_queue(opened.queue());
  ub::v1::CloseQueueResponse closed;
  EXPECT_TRUE(Call(&ub::v1::Broker::Stub::CloseQueue, close, &closed).ok());
  status = Call(&ub::v1::Broker::Stub::CloseQueue, close, &closed);
  EXPECT_EQ(ReasonText(status), "NO_SUCH_QUEUE");
}

TEST_F(RpcDataTest, QueueThatCannotBeDeliveredIsClosed) {
  session_->StopReading();
  ub::v1::OpenQueueResponse opened;
  grpc::Status status = OpenQueue(64, &opened);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(engine_.QueuesOpen(), 0u);
  EXPECT_EQ(ReasonText(OpenQueue(63, &opened)), "BAD_FIELD");
}

TEST_F(RpcDataTest, CallsWithoutASessionAreRefused) {
  peers_.SetUid(Uid(4711));
  ub::v1::OpenQueueResponse opened;
  EXPECT_EQ(ReasonText(OpenQueue(64, &opened)), "NO_SESSION");
  ub::v1::OpenFileResponse file;
  EXPECT_EQ(ReasonText(OpenFile(1, &file)), "NO_SESSION");
  ub::v1::RegisterMemoryResponse memory;
  EXPECT_EQ(ReasonText(Call(&ub::v1::Broker::Stub::RegisterMemory, ub::v1::RegisterMemoryRequest(), &memory)),
            "NO_SESSION");
}

TEST_F(RpcDataTest, FileFactsComeBack) {
  engine_.facts.trusted = engine_.facts.readable = engine_.facts.direct = true;
  engine_.facts.offset_align = 512;
  engine_.facts.file_system = "ext4";
  engine_.facts.bytes = 12345;
  ub::v1::OpenFileResponse file;
  grpc::Status status = OpenFile(1, &file);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_NE(file.file(), 0u);
  EXPECT_TRUE(file.readable() && file.direct() && !file.writable());
  EXPECT_EQ(file.offset_align(), 512u);
  EXPECT_EQ(file.file_system(), "ext4");
  EXPECT_EQ(file.bytes(), 12345u);
  EXPECT_EQ(ReasonText(OpenFile(404, &file)), "NO_SUCH_OFFER");
  EXPECT_EQ(ReasonText(OpenFile(0, &file)), "BAD_FIELD");
  ub::v1::CloseFileRequest close;
  close.set_file(1);
  ub::v1::CloseFileResponse closed;
  EXPECT_TRUE(Call(&ub::v1::Broker::Stub::CloseFile, close, &closed).ok());
  EXPECT_EQ(engine_.FilesOpen(), 0u);
}

TEST_F(RpcDataTest, UntrustedFileHasNoHandleAndSaysWhy) {
  engine_.facts.why_not = ub::wire::PathReason::kFsNotTrusted;
  engine_.facts.file_system = "fuse.sshfs";
  ub::v1::OpenFileResponse file;
  ASSERT_TRUE(OpenFile(1, &file).ok());
  EXPECT_EQ(file.file(), 0u);
  EXPECT_EQ(file.path_reason(), static_cast<uint32_t>(ub::wire::PathReason::kFsNotTrusted));
  EXPECT_EQ(file.file_system(), "fuse.sshfs");
}

TEST_F(RpcDataTest, FileOfACallerThatHasGoneIsClosedAgain) {
  engine_.facts.trusted = true;
  auto go = std::make_shared<std::atomic<bool>>(false);
  engine_.WaitInOpenFile([go] { go->wait(false); });
  ub::v1::OpenFileResponse file;
  grpc::Status status = OpenFile(1, &file, absl::Milliseconds(100));
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  // Another call is answered meanwhile, though the file system hangs.
  ub::v1::OpenQueueResponse opened;
  EXPECT_TRUE(OpenQueue(64, &opened).ok());
  go->store(true);
  go->notify_all();
  Eventually([&] { return engine_.Opens() == 1 && engine_.FilesOpen() == 0; });
}

TEST_F(RpcDataTest, FilesThatWaitAreBounded) {
  engine_.facts.trusted = true;
  auto go = std::make_shared<std::atomic<bool>>(false);
  engine_.WaitInOpenFile([go] { go->wait(false); });
  std::atomic<int> refused{0}, opened{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 80; ++i) {
    callers.emplace_back([&] {
      ub::v1::OpenFileResponse file;
      grpc::Status status = OpenFile(1, &file, absl::Seconds(30));
      if (status.ok()) ++opened;
      if (status.error_code() == StatusCode::RESOURCE_EXHAUSTED) ++refused;
    });
  }
  Eventually([&] { return refused.load() == 80 - 65; });  // one runs, 64 wait
  go->store(true);
  go->notify_all();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(opened.load(), 65);
}

TEST_F(RpcDataTest, StuckFileDoesNotHoldUpTheEnd) {
  engine_.facts.trusted = true;
  auto go = std::make_shared<std::atomic<bool>>(false);
  engine_.WaitInOpenFile([go] { go->wait(false); });
  ub::v1::OpenFileResponse file;
  EXPECT_EQ(OpenFile(1, &file, absl::Milliseconds(50)).error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(server_->Shutdown("test", absl::Milliseconds(10)));
  go->store(true);
  go->notify_all();
  Eventually([&] { return engine_.FilesOpen() == 0 && engine_.Opens() == 1; });
}

TEST_F(RpcDataTest, OwnMemoryBecomesALeaseAndIsReleased) {
  ub::v1::RegisterMemoryRequest request;
  request.set_offer(1);
  request.set_offset(0);
  request.set_bytes(1 << 20);
  request.set_access(ub::v1::READ_ONLY);
  ub::v1::RegisterMemoryResponse response;
  grpc::Status status = Call(&ub::v1::Broker::Stub::RegisterMemory, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const ub::v1::Lease& lease = response.lease();
  EXPECT_EQ(lease.pool(), "own");
  EXPECT_EQ(lease.block_bytes(), 1u << 20);
  EXPECT_EQ(lease.ub_addr_size(), 1);
  EXPECT_EQ(lease.access(), ub::v1::READ_ONLY);
  EXPECT_EQ(memory_.OwnBytes(), ub::MiB(1));
  EXPECT_EQ(memory_.Dropped(), 0u);
  ub::v1::ReleaseRequest release;
  release.set_lease(lease.id());
  ub::v1::ReleaseResponse released;
  EXPECT_TRUE(Call(&ub::v1::Broker::Stub::Release, release, &released).ok());
  EXPECT_EQ(memory_.Dropped(), 1u);
}

TEST_F(RpcDataTest, OwnMemoryThatIsRefusedIsDropped) {
  ub::v1::RegisterMemoryRequest request;
  request.set_offer(1);
  request.set_offset(4096);
  request.set_bytes(1 << 20);
  request.set_access(ub::v1::READ_WRITE);
  ub::v1::RegisterMemoryResponse response;
  EXPECT_EQ(ReasonText(Call(&ub::v1::Broker::Stub::RegisterMemory, request, &response)), "BAD_MEMORY");
  request.set_offset(0);
  BrokerLimits limits;
  limits.default_per_uid = Bytes(4096);
  broker_.SetLimits(limits);
  EXPECT_FALSE(Call(&ub::v1::Broker::Stub::RegisterMemory, request, &response).ok());
  EXPECT_EQ(memory_.Dropped(), 1u) << "the quota's refusal leaves nothing mapped";
}

TEST_F(RpcDataTest, PathIsShownToAllAndSetByAdminsOnly) {
  ub::v1::PathStatus path;
  auto context = Context();
  ASSERT_TRUE(admin_stub_->GetPath(context.get(), {}, &path).ok());
  EXPECT_EQ(path.policy(), "prefer-direct");
  EXPECT_EQ(path.min_direct_bytes(), 256u << 10);
  EXPECT_EQ(path.registration(), "5 of 5 backings");
  ub::v1::SetPathRequest set;
  set.set_policy("staged-only");
  context = Context();
  EXPECT_EQ(ReasonText(admin_stub_->SetPath(context.get(), set, &path)), "NOT_ADMIN");
  EXPECT_EQ(engine_.Paths().policy, ub::wire::PathPolicy::kPreferDirect);
  peers_.SetUid(Uid(0));
  context = Context();
  ASSERT_TRUE(admin_stub_->SetPath(context.get(), set, &path).ok());
  EXPECT_EQ(path.policy(), "staged-only");
  EXPECT_EQ(engine_.Paths().policy, ub::wire::PathPolicy::kStagedOnly);
}

TEST_F(RpcDataTest, QueuesAreShownToTheirOwnUserAndToAdmins) {
  QueueListing mine, orphan;
  mine.session = SessionId(1);
  mine.id = 5;
  mine.state = "open";
  mine.oldest = absl::Milliseconds(3);
  orphan.session = SessionId(99);
  orphan.state = "closing";
  engine_.SetListing({mine, orphan});
  auto list = [this](Uid uid) {
    peers_.SetUid(uid);
    ub::v1::QueueList queues;
    auto context = Context();
    EXPECT_TRUE(admin_stub_->ListQueues(context.get(), {}, &queues).ok());
    return queues;
  };
  ub::v1::QueueList own = list(Uid(1000));
  ASSERT_EQ(own.queues_size(), 1);
  EXPECT_EQ(own.queues(0).id(), 5u);
  EXPECT_EQ(own.queues(0).uid(), 1000u);
  EXPECT_EQ(own.queues(0).oldest_ns(), 3000000u);
  EXPECT_EQ(list(Uid(1001)).queues_size(), 0);
  ub::v1::QueueList all = list(Uid(0));
  ASSERT_EQ(all.queues_size(), 2);
  EXPECT_FALSE(all.queues(1).has_oldest_ns());
}

}  // namespace
}  // namespace ubd
