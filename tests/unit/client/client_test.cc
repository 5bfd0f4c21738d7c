// libub as a whole against a scripted daemon: what only a misbehaving daemon, or exact timing, can show.
#include "tests/unit/client/client_fixture.h"

namespace ub {
namespace {

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

}  // namespace
}  // namespace ub
