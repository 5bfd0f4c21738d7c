// A lane with its thread: it sleeps when it may and wakes when it must.
#include "daemon/engine/lane.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <vector>

#include "tests/unit/engine/lane_rig.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::Op;
using ub::wire::QueueState;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

constexpr uint64_t kChunk = 65536;
constexpr int kPatienceMs = 10'000;

class LaneTest : public ::testing::Test {
 protected:
  // Asleep: its queue is armed, and nothing is looked at any more.
  bool Sleeps(const Tenant& tenant) {
    return Until([&tenant] { return tenant.client->indices().daemon_sleep.load() != 0; });
  }
  LaneRig rig;
};

TEST_F(LaneTest, AnswersAwakeAndAsleep) {
  Tenant a = rig.Open(kAlice);
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(i % 10 != 0 || Sleeps(a));
    a.client->Submit(Nop(i));
    std::optional<CompletionEntry> done = a.client->Wait(kPatienceMs);
    ASSERT_TRUE(done) << i;
    ASSERT_EQ(done->user_data, i);
  }
  EXPECT_GE(a.queue->sleeps.read(), 20U);
}

TEST_F(LaneTest, AnIdleLaneDoesNothing) {
  Tenant a = rig.Open(kAlice), b = rig.Open(kBob);
  ASSERT_TRUE(Sleeps(a) && Sleeps(b));
  const uint64_t polls = a.queue->polls.read() + b.queue->polls.read();
  const uint64_t sleeps = a.queue->sleeps.read() + b.queue->sleeps.read();
  poll(nullptr, 0, 200);  // what is observed is that nothing happens in this time
  EXPECT_EQ(a.queue->polls.read() + b.queue->polls.read(), polls);
  EXPECT_EQ(a.queue->sleeps.read() + b.queue->sleeps.read(), sleeps);
}

TEST_F(LaneTest, APollDoesNotLookAtSleepingQueues) {
  std::vector<Tenant> idle;
  Tenant a = rig.Open(kAlice);
  for (int i = 0; i < 63; ++i) {
    idle.emplace_back();
    idle.back().session = a.session;
    rig.AddQueue(idle.back(), 16, 32, 20'000);
  }
  for (const Tenant& tenant : idle) ASSERT_TRUE(Sleeps(tenant));
  uint64_t before = 0, after = 0;
  for (const Tenant& tenant : idle) before += tenant.queue->polls.read();
  for (uint64_t i = 0; i < 500; ++i) {
    a.client->Submit(Nop(i));
    ASSERT_TRUE(a.client->Wait(kPatienceMs));
  }
  for (const Tenant& tenant : idle) after += tenant.queue->polls.read();
  EXPECT_EQ(before, after);
  for (const Tenant& tenant : idle) {
    tenant.client->Submit(Nop(1));
    ASSERT_TRUE(tenant.client->Wait(kPatienceMs)) << "each of them wakes the lane";
  }
}

TEST_F(LaneTest, ACompletionOfTheDeviceWakesIt) {
  Tenant a = rig.Open(kAlice);
  for (uint64_t i = 0; i < 20; ++i) {
    a.client->Submit(a.Read(i, kChunk));
    ASSERT_TRUE(Until([this] { return rig.ring->posted().size() == 1; }));
    ASSERT_TRUE(Sleeps(a));
    rig.ring->End();
    std::optional<CompletionEntry> done = a.client->Wait(kPatienceMs);
    ASSERT_TRUE(done);
    EXPECT_EQ(done->bytes, kChunk);
    EXPECT_GT(done->device_ns, 0U);
  }
}

TEST_F(LaneTest, ADeadlineComesOnTime) {
  Tenant a = rig.Open(kAlice);
  SubmitEntry entry = a.Read(1, kChunk);
  entry.deadline_ms = 30;
  const uint64_t start = MonoNs();
  a.client->Submit(entry);
  std::optional<CompletionEntry> first = a.client->Wait(kPatienceMs);
  ASSERT_TRUE(first);
  EXPECT_EQ(ErrorIn(*first), TransferError::kDeadline);
  EXPECT_EQ(first->flags, ub::wire::kCompletionMore);
  EXPECT_GE(MonoNs() - start, 30'000'000U);
  rig.ring->End();
  std::optional<CompletionEntry> last = a.client->Wait(kPatienceMs);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->flags & ub::wire::kCompletionMore, 0);
}

TEST_F(LaneTest, CompletionsThatAreReadMuchLaterMakeRoom) {
  Tenant a = rig.Open(kAlice, 16, 16);
  for (uint64_t i = 0; i < 16; ++i) a.client->Submit(Nop(i));
  ASSERT_TRUE(Until([&a] { return a.client->indices().cq_tail.load() == 16; }));
  for (uint64_t i = 16; i < 32; ++i) a.client->Submit(Nop(i));
  ASSERT_TRUE(Sleeps(a));
  Tenant b = rig.Open(kBob);
  b.client->Submit(Nop(1));
  ASSERT_TRUE(b.client->Wait(kPatienceMs)) << "it held up somebody else";
  for (uint64_t i = 0; i < 32; ++i) {
    std::optional<CompletionEntry> done = a.client->Wait(kPatienceMs);
    ASSERT_TRUE(done) << i;
    ASSERT_EQ(done->user_data, i);
  }
}

TEST_F(LaneTest, ACloseDrainsFirst) {
  Tenant a = rig.Open(kAlice);
  a.client->Submit(a.Read(1, kChunk));
  ASSERT_TRUE(Until([this] { return rig.ring->posted().size() == 1; }));
  rig.lane->Close(a.queue);
  ASSERT_TRUE(Until([&a] { return a.client->state() == QueueState::kClosed; }));
  EXPECT_EQ(a.queue->List(MonoNs()).state, "draining");
  EXPECT_EQ(rig.gone.load(), 0);
  rig.ring->End();
  ASSERT_TRUE(Until([this] { return rig.gone.load() == 1; }));
  EXPECT_EQ(a.client->Poll()->user_data, 1U);
  EXPECT_EQ(rig.lane->queues(), 0U);
}

TEST_F(LaneTest, GarbageInOneQueueLeavesTheOthers) {
  Tenant a = rig.Open(kAlice);
  Tenant a2;
  a2.session = a.session;
  rig.AddQueue(a2, 16, 32, 20'000);
  a.client->indices().sq_tail = 0x80000000;
  const uint64_t one = 1;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(write(a.queue->memory->event_fd(), &one, 8), 8);
  ASSERT_TRUE(Until([&a] { return a.client->state() == QueueState::kBroken; }));
  EXPECT_TRUE(Until([&a] { return a.queue->List(MonoNs()).state == "broken"; }));
  a2.client->Submit(Nop(3));
  EXPECT_TRUE(a2.client->Wait(kPatienceMs));
}

TEST_F(LaneTest, ASessionBelowItsCapGoesOn) {
  Tenant a = rig.Open(kAlice, 64, 64);
  for (uint64_t i = 0; i < 40; ++i) a.client->Submit(a.Read(i, 4096));
  ASSERT_TRUE(Until([this] { return rig.ring->posted().size() == 16; }));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Until([this] { return !rig.ring->posted().empty(); })) << i;
    EXPECT_LE(rig.ring->posted().size(), 16U);
    rig.ring->End();
  }
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(a.client->Wait(kPatienceMs));
}

TEST_F(LaneTest, CopiesEveryByte) {
  Tenant a = rig.Open(kAlice);
  Grant to = rig.core.Take(a.session->id);
  auto* source = static_cast<char*>(rig.memory.Locate(a.lease.blocks[0].block).address);
  auto* target = static_cast<char*>(rig.memory.Locate(to.blocks[0].block).address);
  for (size_t i = 0; i < kBlock.count(); ++i) source[i] = static_cast<char>(i * 31 + i / 4096);
  SubmitEntry entry = a.Entry(Op::kCopy, 1, 1, kBlock.count() - 1);
  entry.target_lease = to.lease.value();
  entry.target = static_cast<uint32_t>(to.generation.value());
  a.client->Submit(entry);
  std::optional<CompletionEntry> done = a.client->Wait(kPatienceMs);
  ASSERT_TRUE(done);
  EXPECT_EQ(ErrorIn(*done), TransferError::kOk);
  EXPECT_EQ(done->bytes, kBlock.count() - 1);
  EXPECT_EQ(memcmp(target, source + 1, kBlock.count() - 1), 0);
  EXPECT_EQ(target[kBlock.count() - 1], 0);
}

TEST_F(LaneTest, StopAnswersWhatWaitsAndWaitsForTheDevice) {
  Tenant a = rig.Open(kAlice);
  a.client->Submit(a.Read(1, kChunk));
  ASSERT_TRUE(Until([this] { return rig.ring->posted().size() == 1; }));
  ASSERT_TRUE(Sleeps(a));
  rig.shared.stopping = true;
  a.client->Submit(Nop(2));
  EXPECT_EQ(ErrorIn(*a.client->Wait(kPatienceMs)), TransferError::kStopping);
  rig.lane->BeginStop();
  EXPECT_FALSE(rig.lane->WaitIdle(FromNow(20))) << "something is in flight";
  rig.ring->End();
  EXPECT_TRUE(rig.lane->WaitIdle(FromNow(kPatienceMs)));
  EXPECT_EQ(a.client->Wait(kPatienceMs)->user_data, 1U);
}

}  // namespace
}  // namespace ubd
