// libub as a whole against a scripted daemon: retries, caches at their limits, forks and streams that end.
#include "tests/unit/client/client_fixture.h"

namespace ub {
namespace {

TEST_F(ClientTest, LostAnswerMakesTwoLeases) {
  daemon_.LoseAnswers(1);
  Lease lease = Get();
  std::vector<v1::AcquireRequest> asked = daemon_.acquires();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].request_id(), asked[1].request_id());
  Get();
  EXPECT_NE(daemon_.acquires()[2].request_id(), asked[0].request_id());
}

TEST_F(ClientTest, OwnCacheStarvesOwnRequest) {
  {
    Lease a = Get();
    Lease b = Get();
  }
  EXPECT_EQ(client_->stats().cached_bytes, MiB(4).count());
  daemon_.Set(Refuse(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED"));
  absl::Status status = client_->Acquire({.bytes = MiB(4)}).status();
  EXPECT_EQ(ReasonOf(status), Reason::kQuotaExceeded);
  EXPECT_EQ(DetailOf(status, "asked"), "7");
  EXPECT_EQ(status.message(), "text of the daemon");
  EXPECT_EQ(daemon_.released().size(), 2u);
  EXPECT_EQ(daemon_.acquires().size(), 4u);  // two leases, the refusal, one more try
  EXPECT_FALSE(client_->Acquire({.bytes = MiB(4)}).ok());
  EXPECT_EQ(daemon_.acquires().size(), 5u);  // nothing to drop: no second try
}

TEST_F(ClientTest, CacheKeptPastItsLimitOrTheClient) {
  client_.reset();
  client_ = Connect(MiB(4));
  {
    Lease a = Get();
    Lease b = Get();
    Lease c = Get();
  }
  EXPECT_EQ(daemon_.released().size(), 1u);
  client_.reset();
  EXPECT_EQ(daemon_.released().size(), 3u);
}

TEST_F(ClientTest, LeaseLargerThanOneFrame) {
  Lease lease = Get({.bytes = MiB(2) * 600});
  ASSERT_EQ(lease.size(), (MiB(2) * 600).count());
  lease.data()[lease.size() - 1] = std::byte{9};  // the fake's blocks are all one memfd
  EXPECT_EQ(lease.data()[MiB(2).count() - 1], std::byte{9});
  EXPECT_EQ(client_->stats().blocks_mapped, 600u);
  EXPECT_EQ(lease.ub_addr(Bytes(lease.size())).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(*lease.ub_addr(MiB(2) + Bytes(5)), UbAddr(UbAddr::kBase + MiB(2).count() + 5));
}

TEST_F(ClientTest, ThreadsTakeEachOthersMemory) {
  daemon_.Set({.fds_per_frame = 1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 10; ++round) {
        absl::StatusOr<Lease> lease = client_->Acquire({.bytes = MiB(2) * 5, .cacheable = false});
        ASSERT_TRUE(lease.ok()) << lease.status();
        lease->data()[0] = std::byte{1};
        absl::StatusOr<Lease> attached = client_->Attach(Ticket());
        ASSERT_TRUE(attached.ok()) << attached.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(client_->stats().leases, 160u);
}

TEST_F(ClientTest, ImpossibleRequestsReachTheDaemon) {
  for (const AcquireOptions& bad : {AcquireOptions{}, AcquireOptions{.bytes = MiB(1), .ttl = absl::ZeroDuration()}}) {
    EXPECT_EQ(client_->Acquire(bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(daemon_.acquires(), IsEmpty());
  EXPECT_EQ(ReasonOf(Lease().Release()), Reason::kNoSuchLease);
  EXPECT_EQ(Lease().ub_addr(Bytes()).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ClientTest, ForkedChildActsForTheParent) {
  Lease lease = Get();
  { Lease cached = Get({.bytes = MiB(4)}); }
  int status = InChild([&] {
    if (ReasonOf(client_->Acquire({.bytes = MiB(4)}).status()) != Reason::kForked) return 1;
    if (ReasonOf(client_->Ping()) != Reason::kForked) return 2;
    if (ReasonOf(client_->Attach(Ticket()).status()) != Reason::kForked) return 3;
    if (ReasonOf(lease.Share({.uid = Uid(1)}).status()) != Reason::kForked) return 4;
    if (lease.alive() || ReasonOf(lease.Release()) != Reason::kForked) return 5;
    if (client_->stats().rpcs != 0) return 6;
    absl::Status anew = Client::Connect({.runtime_dir = daemon_.dir()}).status();
    if (ReasonOf(anew) != Reason::kForked) return 7;
    client_.reset();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_THAT(daemon_.released(), IsEmpty());
  EXPECT_FALSE(daemon_.lifeline_hung_up());
  EXPECT_TRUE(lease.alive());
  EXPECT_TRUE(client_->Ping().ok());
}

TEST_F(ClientTest, EndedStreamLeavesTheSessionOpen) {
  { Lease cached = Get(); }
  daemon_.EndStreams();
  EXPECT_EQ(AwaitEvents(1)[0].kind, Event::Kind::kDisconnected);
  EXPECT_EQ(client_->stats().cached_bytes, 0u);
  daemon_.AwaitHangUp();
  absl::Time start = absl::Now();
  client_.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
}

}  // namespace
}  // namespace ub
