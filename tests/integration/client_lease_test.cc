// libub against the real daemon, with real processes of several users.
#include "tests/integration/client_lease_fixture.h"

namespace ubd::testing {
namespace {

TEST_F(ClientLeaseTest, CachedLeaseCostsACall) {
  std::unique_ptr<ub::Client> client = Connect();
  auto lease = client->Acquire({.bytes = ub::Bytes(kBlock * 3)});
  ASSERT_TRUE(lease.ok()) << lease.status();
  lease->data()[lease->size() - 1] = std::byte{7};
  std::byte* at = lease->data();
  ASSERT_TRUE(lease->Release().ok());
  EXPECT_EQ(watch_->Pools().pools(0).blocks_cached(), 3u);
  uint64_t calls = client->stats().rpcs;
  auto again = client->Acquire({.bytes = ub::Bytes(kBlock * 3)});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->data(), at);
  EXPECT_EQ(again->data()[again->size() - 1], std::byte{7});
  EXPECT_EQ(client->stats().rpcs, calls);
  EXPECT_EQ(watch_->Pools().pools(0).blocks_leased(), 3u);
  ASSERT_TRUE(again->Release().ok());
  ASSERT_TRUE(client->DropCache().ok());
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, CacheOfOneStarvesAnother) {
  auto hoarder = Actor(kNobody);
  ASSERT_THAT(Do(*hoarder, absl::StrCat("acquire ", kBlock * kBlocks)), StartsWith("ok"));
  ASSERT_EQ(Do(*hoarder, "release"), "ok");
  EXPECT_EQ(watch_->Pools().pools(0).blocks_cached(), kBlocks);
  auto other = Actor(kSomebody);
  ASSERT_THAT(Do(*other, absl::StrCat("acquire ", kBlock * kBlocks, " 20000")), StartsWith("ok"));
  EXPECT_EQ(Do(*hoarder, "await-end"), "ok recalled");
  EXPECT_THAT(Do(*hoarder, "stats"), HasSubstr("recalled=1 cached=0"));
  // And back: what is held is not recalled.
  EXPECT_THAT(Do(*hoarder, absl::StrCat("acquire ", kBlock, " 100")), StartsWith("WAIT_TIMEOUT"));
}

TEST_F(ClientLeaseTest, StoppedClientKeepsItsCache) {
  auto hoarder = Actor(kNobody);
  ASSERT_THAT(Do(*hoarder, absl::StrCat("acquire ", kBlock * kBlocks)), StartsWith("ok"));
  ASSERT_EQ(Do(*hoarder, "release"), "ok");
  Stop(*hoarder);
  auto other = Actor(kSomebody);
  EXPECT_THAT(Do(*other, absl::StrCat("acquire ", kBlock, " 20000")), StartsWith("ok"));
  hoarder->Signal(SIGCONT);
  EXPECT_EQ(Do(*hoarder, "await-end"), "ok recalled");
}

TEST_F(ClientLeaseTest, OwnCacheOfTheWrongSizeBlocksARequest) {
  std::unique_ptr<ub::Client> client = Connect();
  {
    std::vector<ub::Lease> leases;
    for (uint64_t i = 0; i < kBlocks; ++i) {
      auto lease = client->Acquire({.bytes = ub::Bytes(kBlock)});
      ASSERT_TRUE(lease.ok()) << lease.status();
      leases.push_back(*std::move(lease));
    }
    EXPECT_EQ(ReasonOf(client->Acquire({.bytes = ub::Bytes(kBlock)}).status()), Reason::kPoolEmpty);
  }
  auto all = client->Acquire({.bytes = ub::Bytes(kBlock * kBlocks), .wait = absl::Seconds(20)});
  EXPECT_TRUE(all.ok()) << all.status();
}

TEST_F(ClientLeaseTest, ShareReachesTheWrongUserOrTwice) {
  auto owner = Actor(kNobody);
  auto friend_ = Actor(kSomebody);
  auto stranger = Actor(Ids{1001, 65534});
  ASSERT_THAT(Do(*owner, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  ASSERT_EQ(Do(*owner, "put hello"), "ok");
  std::string ticket = Rest(Do(*owner, absl::StrCat("share ", kSomebody.uid, " ro")));
  EXPECT_THAT(Do(*stranger, "attach " + ticket), StartsWith("NO_SUCH_TICKET"));
  ASSERT_EQ(Do(*friend_, "attach " + ticket), "ok");
  EXPECT_EQ(Do(*friend_, "get 5"), "ok hello");
  EXPECT_THAT(Do(*friend_, "attach " + ticket), StartsWith("NO_SUCH_TICKET"));
  EXPECT_EQ(Do(*friend_, "alive"), "ok alive");
  ASSERT_EQ(Do(*owner, "release"), "ok");
  EXPECT_EQ(Do(*friend_, "await-end"), "ok owner_released");
  EXPECT_EQ(Do(*friend_, "alive"), "ok ended");
  EXPECT_THAT(Do(*friend_, "release"), StartsWith("NO_SUCH_LEASE"));
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, ReadOnlyShareMadeWritable) {
  auto owner = Actor(kNobody);
  auto reader = Actor(kSomebody);
  ASSERT_THAT(Do(*owner, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  ASSERT_EQ(Do(*reader, "attach " + Rest(Do(*owner, absl::StrCat("share ", kSomebody.uid, " ro")))), "ok");
  EXPECT_EQ(Do(*reader, "make-writable"), absl::StrCat("ok errno ", EACCES));
  // Where the kernel cannot enforce it, the answer says so.
  auto root = Actor(std::nullopt);
  EXPECT_EQ(Do(*root, "attach " + Rest(Do(*owner, "share 0 ro"))), "ok advisory");
  // A writable share is writable.
  auto writer = Actor(kSomebody);
  ASSERT_EQ(Do(*writer, "attach " + Rest(Do(*owner, absl::StrCat("share ", kSomebody.uid, " rw")))), "ok");
  ASSERT_EQ(Do(*writer, "put from-writer"), "ok");
  EXPECT_EQ(Do(*owner, "get 11"), "ok from-writer");
}

TEST_F(ClientLeaseTest, RevokeOrExpiryNotTold) {
  std::unique_ptr<ub::Client> client = Connect();
  ub::Mutex mu;
  ub::CondVar changed;
  std::vector<ub::Event> events;
  client->OnEvent([&](const ub::Event& event) {
    ub::MutexLock lock(&mu);
    events.push_back(event);
    changed.SignalAll();
  });
  auto await = [&](size_t count) {
    ub::MutexLock lock(&mu);
    while (events.size() < count) {
      if (changed.WaitWithTimeout(&mu, kBound)) return ub::Event::Kind::kDisconnected;
    }
    return events[count - 1].kind;
  };
  auto lease = client->Acquire({.bytes = ub::Bytes(kBlock)});
  ASSERT_TRUE(lease.ok());
  grpc::ClientContext context;
  ub::v1::RevokeLeaseRequest request;
  request.set_lease(lease->id().value());
  ub::v1::RevokeLeaseResponse response;
  ASSERT_TRUE(watch_->admin().RevokeLease(&context, request, &response).ok());
  EXPECT_EQ(await(1), ub::Event::Kind::kRevoked);
  EXPECT_FALSE(lease->alive());
  EXPECT_EQ(ReasonOf(lease->Release()), Reason::kRevoked);

  auto brief = client->Acquire({.bytes = ub::Bytes(kBlock), .ttl = absl::Milliseconds(300)});
  ASSERT_TRUE(brief.ok());
  EXPECT_TRUE(brief->alive());
  EXPECT_LE(*brief->ttl_left(), absl::Milliseconds(300));
  EXPECT_EQ(await(2), ub::Event::Kind::kExpired);
  EXPECT_FALSE(brief->alive());
  EXPECT_EQ(ReasonOf(brief->Release()), Reason::kExpired);
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

}  // namespace
}  // namespace ubd::testing
