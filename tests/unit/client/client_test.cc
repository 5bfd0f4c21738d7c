// libub as a whole against a scripted daemon: what only a misbehaving daemon, or exact timing, can show.
#include "ub/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "proto/wire/error.h"
#include "tests/unit/client/fake_daemon.h"
#include "ub/slot_pool.h"

namespace ub {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ClientTest : public testing::Test {
 protected:
  void SetUp() override { client_ = Connect(); }
  std::unique_ptr<Client> Connect(Bytes cache_limit = Bytes(UINT64_MAX)) {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect({.runtime_dir = daemon_.dir(), .cache_limit = cache_limit});
    if (!client.ok()) ADD_FAILURE() << client.status();
    daemon_.AwaitWatchers(1);
    (*client)->OnEvent([this](const Event& event) {
      MutexLock lock(&mu_);
      events_.push_back(event);
      changed_.SignalAll();
    });
    return *std::move(client);
  }
  Lease Get(AcquireOptions options = {.bytes = MiB(2)}) {
    absl::StatusOr<Lease> lease = client_->Acquire(options);
    if (!lease.ok()) {
      ADD_FAILURE() << lease.status();
      return Lease();
    }
    return *std::move(lease);
  }
  // Blocks until the callback has seen `count` events.
  std::vector<Event> AwaitEvents(size_t count) {
    MutexLock lock(&mu_);
    while (events_.size() < count) {
      if (changed_.WaitWithTimeout(&mu_, absl::Seconds(10))) ADD_FAILURE() << "no event came";
    }
    return events_;
  }
  FakeDaemon::Script Refuse(grpc::StatusCode code, const std::string& reason) {
    return {.acquire = FakeDaemon::Refusal(code, reason, "text of the daemon")};
  }

  FakeDaemon daemon_;
  Mutex mu_;
  CondVar changed_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, ReleasedLeaseAskedOfTheDaemonAgain) {
  Lease lease = Get();
  LeaseId id = lease.id();
  std::byte* at = lease.data();
  EXPECT_TRUE(lease.Release().ok());
  uint64_t calls = client_->stats().rpcs;
  Lease again = Get();
  EXPECT_EQ(again.id(), id);
  EXPECT_EQ(again.data(), at);
  EXPECT_EQ(client_->stats().rpcs, calls);
  EXPECT_EQ(client_->stats().cache_hits, 1u);
  EXPECT_THAT(daemon_.released(), IsEmpty());
}

TEST_F(ClientTest, LeaseThatMustNotBeCachedIsCached) {
  {
    Lease shared = Get();
    ASSERT_TRUE(shared.Share({.uid = Uid(1)}).ok());
  }
  {
    Lease ttl = Get({.bytes = MiB(2), .ttl = absl::Seconds(60)});
    EXPECT_LE(*ttl.ttl_left(), absl::Seconds(60));
  }
  { Lease plain = Get({.bytes = MiB(2), .cacheable = false}); }
  EXPECT_THAT(daemon_.released(), ElementsAre(1, 2, 3));
  EXPECT_EQ(client_->stats().cached_bytes, 0u);
}

TEST_F(ClientTest, RecalledLeaseStaysMapped) {
  Lease lease = Get();
  std::byte* at = lease.data();
  ASSERT_TRUE(lease.Release().ok());
  ASSERT_TRUE(wire::TryRecall(daemon_.page().page().words[0], 101));
  daemon_.Emit(v1::Event::RECALLED, 1);
  EXPECT_EQ(AwaitEvents(1)[0].kind, Event::Kind::kRecalled);
  EXPECT_EQ(::msync(at, 4096, MS_ASYNC), -1);
  EXPECT_EQ(client_->stats().cached_bytes, 0u);
  EXPECT_EQ(client_->stats().recalled, 1u);
  EXPECT_EQ(Get().id(), LeaseId(2));
}

TEST_F(ClientTest, RevokedLeaseLooksAlive) {
  Lease revoked = Get();
  Lease expired = Get();
  Lease attached = *client_->Attach(Ticket());
  EXPECT_EQ(attached.access(), Access::kReadOnly);
  daemon_.Emit(v1::Event::REVOKED, 1);
  daemon_.Emit(v1::Event::EXPIRED, 2);
  daemon_.Emit(v1::Event::OWNER_RELEASED, 3);
  AwaitEvents(3);
  EXPECT_FALSE(revoked.alive() || expired.alive() || attached.alive());
  EXPECT_NE(revoked.data(), nullptr);
  EXPECT_EQ(revoked.data()[0], std::byte{0});  // still mapped
  EXPECT_EQ(ReasonOf(revoked.Share({.uid = Uid(1)}).status()), Reason::kRevoked);
  EXPECT_EQ(ReasonOf(revoked.Release()), Reason::kRevoked);
  EXPECT_EQ(ReasonOf(expired.Release()), Reason::kExpired);
  EXPECT_EQ(ReasonOf(attached.Release()), Reason::kNoSuchLease);
  EXPECT_FALSE(revoked.valid());
}

TEST_F(ClientTest, MissedEventsBelieved) {
  Lease gone = Get();
  Lease kept = Get();
  Lease cached = Get();
  ASSERT_TRUE(cached.Release().ok());
  ASSERT_TRUE(wire::TryRecall(daemon_.page().page().words[2], 103));
  daemon_.SetListed({2});
  v1::Event event;
  event.set_kind(v1::Event::GRANTED);
  event.set_missed(5);
  daemon_.Emit(event);
  EXPECT_EQ(AwaitEvents(1)[0].lease, LeaseId(1));
  EXPECT_FALSE(gone.alive());
  EXPECT_TRUE(kept.alive());
  EXPECT_EQ(client_->stats().cached_bytes, 0u);
}

TEST_F(ClientTest, DaemonGoneButLeasesAlive) {
  Lease held = Get();
  Lease cached = Get();
  ASSERT_TRUE(cached.Release().ok());
  daemon_.StopServer();
  EXPECT_EQ(AwaitEvents(1)[0].kind, Event::Kind::kDisconnected);
  EXPECT_FALSE(held.alive());
  EXPECT_EQ(client_->stats().cached_bytes, 0u);
  for (const absl::Status& status :
       {client_->Acquire({.bytes = MiB(2)}).status(), client_->Ping(), client_->Attach(Ticket()).status(),
        held.Share({.uid = Uid(1)}).status(), held.Release()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(ReasonOf(status), Reason::kSessionEnded) << status;
  }
}

TEST_F(ClientTest, StalledDaemonLeavesALeaseBehind) {
  auto go = std::make_shared<absl::Notification>();  // the handler may outlive this test's body
  daemon_.Set({.before_answer = [go] { go->WaitForNotification(); }});
  // Shorter than Acquire's own margin would be: the deadline of the RPC is what is tested.
  absl::Time start = absl::Now();
  absl::Status status = client_->Acquire({.bytes = MiB(2)}).status();
  EXPECT_EQ(ReasonOf(status), Reason::kNotAnswering) << status;
  EXPECT_LT(absl::Now() - start, absl::Seconds(8));
  EXPECT_THAT(daemon_.released_requests(), ElementsAre(1));
  go->Notify();
}

TEST_F(ClientTest, UndeliveredLeaseNotGivenBack) {
  daemon_.Set({.send_failure = true});
  EXPECT_EQ(ReasonOf(client_->Acquire({.bytes = MiB(2)}).status()), Reason::kDaemonFdLimit);
  daemon_.Set({.seals = 0});
  EXPECT_EQ(client_->Acquire({.bytes = MiB(2)}).status().code(), absl::StatusCode::kFailedPrecondition);
  daemon_.Set({.fd_bytes = 4096});
  EXPECT_EQ(client_->Acquire({.bytes = MiB(2)}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(daemon_.released(), ElementsAre(1, 2, 3));
  daemon_.Set({});
  EXPECT_TRUE(Get().valid());
}

TEST_F(ClientTest, DescriptorsRunOut) {
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  absl::Status status = client_->Acquire({.bytes = MiB(2) * 200}).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ReasonOf(status), Reason::kClientFdLimit) << status;
  EXPECT_THAT(daemon_.released(), ElementsAre(1));
  EXPECT_TRUE(Get().valid());
}

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
