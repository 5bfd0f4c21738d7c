// The client's end of a ring against the daemon's own end, and against one that writes what cannot be.
#include "client/src/queue_ring_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>

#include <random>
#include <thread>

#include "proto/wire/error.h"
#include "tests/unit/client/test_client.h"

namespace ub {
namespace {

constexpr wire::QueueLayout kLayout = {.sq_entries = 8, .cq_entries = 16};

class QueueRingClientTest : public testing::Test {
 protected:
  QueueShape Shape() { return {.id = 3, .layout = kLayout, .spin_ns = 0}; }
  std::unique_ptr<QueueRingClient> Map() {
    auto ring = QueueRingClient::Map(daemon_.DupMemory(), daemon_.DupEvent(), Shape());
    EXPECT_TRUE(ring.ok()) << ring.status();
    return ring.ok() ? *std::move(ring) : nullptr;
  }
  static wire::SubmitEntry Entry(uint64_t number) { return {.op = 0, .user_data = number}; }
  bool Rung() {
    pollfd bell = {.fd = daemon_.event(), .events = POLLIN, .revents = 0};
    return ::poll(&bell, 1, 0) == 1;
  }

  RingDaemon daemon_{kLayout, 3};
};

TEST_F(QueueRingClientTest, MemoryThatCanShrinkOrLiesMapped) {
  QueueShape shape = Shape();
  auto loose = QueueRingClient::Map(MakeMemfd(kLayout.bytes(), 0), daemon_.DupEvent(), shape);
  EXPECT_EQ(loose.status().code(), absl::StatusCode::kFailedPrecondition);
  auto other = QueueRingClient::Map(MakeMemfd(kLayout.bytes() + 4096), daemon_.DupEvent(), shape);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  for (uint32_t entries : {0u, 3u, 1u << 31}) {
    shape.layout.sq_entries = entries;
    EXPECT_FALSE(QueueRingClient::Map(daemon_.DupMemory(), daemon_.DupEvent(), shape).ok()) << entries;
  }
  EXPECT_FALSE(QueueRingClient::Map(daemon_.DupMemory(), UniqueFd(), Shape()).ok());
  wire::QueueHeader good = daemon_.header();
  auto refused = [&](auto change) {
    daemon_.header() = good;
    change(daemon_.header());
    return ReasonOf(QueueRingClient::Map(daemon_.DupMemory(), daemon_.DupEvent(), Shape()).status()) ==
           Reason::kMalformedFrame;
  };
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.magic = 1; }));
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.queue = 4; }));
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.sq_entries *= 2; }));
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.cq_entries *= 2; }));
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.sq_offset = 0; }));
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.cq_offset = 1 << 30; }));
  EXPECT_TRUE(refused([](wire::QueueHeader& header) { header.bytes = 1; }));
}

TEST_F(QueueRingClientTest, EntriesLostOrOutOfOrderAcrossTheEnd) {
  auto ring = Map();
  for (uint64_t number = 0; number < 100; number += 4) {
    ASSERT_GE(ring->Room(4), 4u);
    for (uint32_t i = 0; i < 4; ++i) ring->Put(i, Entry(number + i));
    ring->Publish(4);
    for (uint64_t i = 0; i < 4; ++i) {
      wire::SubmitEntry taken = daemon_.Take();
      EXPECT_EQ(taken.user_data, number + i);
      daemon_.Answer(daemon_.Done(taken));
    }
    wire::CompletionEntry done;
    for (uint64_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(ring->Take(done));
      EXPECT_EQ(done.user_data, number + i);
    }
    EXPECT_FALSE(ring->Take(done));
    ring->EndTake();
  }
}

TEST_F(QueueRingClientTest, RoomOfAFullRing) {
  auto ring = Map();
  EXPECT_EQ(ring->Room(100), 8u);
  for (uint32_t i = 0; i < 8; ++i) ring->Put(i, Entry(i));
  ring->Publish(8);
  EXPECT_EQ(ring->Room(1), 0u);
  daemon_.Serve();
  EXPECT_EQ(ring->Room(1), 1u);
}

TEST_F(QueueRingClientTest, BellRungForADaemonThatIsAwake) {
  auto ring = Map();
  ring->Put(0, Entry(1));
  EXPECT_FALSE(ring->Publish(1));
  EXPECT_FALSE(Rung());
  EXPECT_FALSE(daemon_.ring().PrepareSleep());
  daemon_.Serve();
  ASSERT_TRUE(daemon_.ring().PrepareSleep());
  ring->Put(0, Entry(2));
  EXPECT_TRUE(ring->Publish(1));
  EXPECT_TRUE(Rung());
}

// A counter at its end would make a write block for ever.
TEST_F(QueueRingClientTest, BellThatIsFullBlocks) {
  auto ring = Map();
  uint64_t nearly_full = UINT64_MAX - 1;
  ASSERT_EQ(::write(daemon_.event(), &nearly_full, sizeof(nearly_full)), 8);
  int flags = ::fcntl(daemon_.event(), F_GETFL);
  ASSERT_EQ(flags & O_NONBLOCK, O_NONBLOCK);
  ASSERT_TRUE(daemon_.ring().PrepareSleep());
  ring->Put(0, Entry(2));
  EXPECT_TRUE(ring->Publish(1));
}

// The daemon refuses an entry for want of room, sleeps, and nobody tells it that completions were read.
TEST_F(QueueRingClientTest, ReadingCompletionsLeavesTheDaemonAsleep) {
  auto ring = Map();
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 8; ++i) ring->Put(i, Entry(i));
    ring->Publish(8);
    for (int i = 0; i < 8 && round < 2; ++i) daemon_.Serve();
  }
  wire::SubmitEntry entry;
  EXPECT_FALSE(daemon_.ring().Take(entry));
  EXPECT_TRUE(daemon_.ring().NeedsRoom());
  ASSERT_TRUE(daemon_.ring().PrepareSleep());
  wire::CompletionEntry done;
  ASSERT_TRUE(ring->Take(done));
  EXPECT_TRUE(ring->EndTake());
  EXPECT_TRUE(Rung());
}

TEST_F(QueueRingClientTest, IndicesThatCannotBeBelieved) {
  {
    auto ring = Map();
    daemon_.indices().cq_tail.store(17);
    wire::CompletionEntry done;
    EXPECT_FALSE(ring->Take(done));
    EXPECT_EQ(ring->life(), QueueRingClient::Life::kBroken);
    EXPECT_STRNE(ring->broken(), "");
    daemon_.indices().cq_tail.store(0);
  }
  {
    auto ring = Map();
    daemon_.indices().sq_head.store(1);
    EXPECT_EQ(ring->Room(100), 0u);
    EXPECT_EQ(ring->life(), QueueRingClient::Life::kBroken);
  }
}

TEST_F(QueueRingClientTest, WaitsTooLongOrNotAtAll) {
  auto ring = Map();
  uint64_t sleeps = 0;
  absl::Time begin = absl::Now();
  EXPECT_FALSE(ring->Await(Deadline::After(absl::Milliseconds(50)), sleeps));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(49));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  EXPECT_GE(sleeps, 1u);
  ring->Put(0, Entry(1));
  ring->Publish(1);
  daemon_.Serve();
  EXPECT_TRUE(ring->Await(Deadline::After(absl::ZeroDuration()), sleeps));
}

TEST_F(QueueRingClientTest, SleeperMissesTheEnd) {
  for (int round = 0; round < 200; ++round) {
    auto ring = Map();
    std::thread ender([&] { ring->End(); });
    uint64_t sleeps = 0;
    EXPECT_TRUE(ring->Await(Deadline::After(absl::Seconds(30)), sleeps));
    ender.join();
    EXPECT_EQ(ring->life(), QueueRingClient::Life::kSessionEnded);
  }
  auto ring = Map();
  std::thread closer([&] { daemon_.ring().Close(wire::QueueState::kClosed); });
  uint64_t sleeps = 0;
  EXPECT_TRUE(ring->Await(Deadline::After(absl::Seconds(30)), sleeps));
  closer.join();
  EXPECT_EQ(ring->life(), QueueRingClient::Life::kClosed);
}

// Both ends with random pauses at random places: no wake-up is lost, every entry is answered once, in order.
class Pauses {
 public:
  explicit Pauses(uint64_t seed) : random_(seed) {}
  void Maybe() {
    uint64_t roll = random_() % 64;
    if (roll == 0) ::usleep(static_cast<useconds_t>(random_() % 200));
    if (roll < 16) std::this_thread::yield();
  }
  uint64_t Below(uint64_t limit) { return random_() % limit; }

 private:
  std::mt19937_64 random_;
};

void ServeMany(RingDaemon& daemon, uint64_t count) {
  Pauses pauses(1);
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event interest = {.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, daemon.event(), &interest), 0);
  for (uint64_t served = 0; served < count;) {
    wire::SubmitEntry entry;
    if (daemon.ring().Take(entry)) {
      pauses.Maybe();
      daemon.ring().Complete(daemon.Done(entry));
      if (pauses.Below(3) == 0) daemon.ring().Publish();
      ++served;
      continue;
    }
    daemon.ring().Publish();
    pauses.Maybe();
    if (!daemon.ring().PrepareSleep()) continue;
    epoll_event event = {};
    // A lost wake-up would end here.
    ASSERT_EQ(::epoll_wait(epoll.get(), &event, 1, 30000), 1);
    daemon.ring().EndSleep();
  }
  daemon.ring().Publish();
}

TEST_F(QueueRingClientTest, WakeUpsLostBetweenTwoThreads) {
  constexpr uint64_t kCount = 20000;
  // Both ends at one address: ThreadSanitizer sees no other kind of sharing.
  auto ring = std::make_unique<QueueRingClient>(daemon_.data(), daemon_.DupEvent(), Shape());
  std::thread daemon([&] { ServeMany(daemon_, kCount); });
  Pauses pauses(2);
  uint64_t submitted = 0;
  uint64_t read = 0;
  uint64_t sleeps = 0;
  while (read < kCount) {
    auto want = static_cast<uint32_t>(std::min<uint64_t>(1 + pauses.Below(8), kCount - submitted));
    if (want > 0 && ring->Room(want) >= want) {
      for (uint32_t i = 0; i < want; ++i) ring->Put(i, Entry(submitted + i));
      pauses.Maybe();
      ring->Publish(want);
      submitted += want;
    }
    pauses.Maybe();
    if (pauses.Below(2) == 0) {
      ASSERT_TRUE(ring->Await(Deadline::After(absl::Seconds(30)), sleeps));
    }
    wire::CompletionEntry done;
    while (ring->Take(done)) ASSERT_EQ(done.user_data, read++);
    ring->EndTake();
  }
  daemon.join();
  EXPECT_EQ(daemon_.ring().broken(), std::string());
}

}  // namespace
}  // namespace ub
