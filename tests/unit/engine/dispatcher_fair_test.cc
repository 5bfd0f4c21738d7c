// Many tenants at once: nobody waits for anybody's large transfers, slow reading or number of queues.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/engine/dispatcher_rig.h"

namespace ubd {
namespace {

using ub::wire::Op;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

constexpr uint64_t kChunk = 65536;

TEST(Fair, ASmallReadPassesALargeOne) {
  DispatcherRig rig(DispatcherRig::SmallOptions(), 4);
  Tenant a = rig.Open(kAlice, 2), b = rig.Open(kBob);
  rig.Submit(a, a.Read(1, 2 * kBlock.count()));
  rig.Submit(b, b.Read(2, 4096));
  int before = 0;
  while (true) {
    const FilePiece ended = rig.ring.End();
    rig.Run({&a, &b});
    if (ended.length == 4096) break;
    ASSERT_LT(++before, 8) << "it waits for more than what was posted already and one piece";
  }
  EXPECT_EQ(rig.Only(b).user_data, 2U);
}

TEST(Fair, LessIsAheadWhileSeveralShareADevice) {
  EngineOptions options = DispatcherRig::SmallOptions();
  options.chunk = ub::MiB(1);
  DispatcherRig rig(options, 128, 32);
  Tenant a = rig.Open(kAlice, 24), b = rig.Open(kBob);
  rig.Submit(a, a.Read(1, 24 * kBlock.count()));
  EXPECT_EQ(rig.ring.posted().size(), 32U) << "in MiB: alone";
  rig.Submit(b, b.Read(1, 4096));
  for (int i = 0; i < 40; ++i) {
    rig.ring.End();
    rig.Run({&a, &b});
  }
  EXPECT_TRUE(b.client->Poll());
  EXPECT_LE(rig.ring.posted().size(), 4U);
}

TEST(Fair, TwoUidsGetTheSameBytes) {
  EngineOptions options = DispatcherRig::SmallOptions();
  options.max_in_flight_per_session = 64;
  DispatcherRig rig(options, 4);
  Tenant a = rig.Open(kAlice), b = rig.Open(kBob);
  for (uint64_t i = 0; i < 16; ++i) a.client->Submit(a.Read(i, kBlock.count()));
  for (uint64_t i = 0; i < 60; ++i) b.client->Submit(b.Read(i, 16384));
  rig.Run({&a, &b});
  const uint32_t b_slot = b.lease.blocks[0].block.value();
  uint64_t bytes_a = 0, bytes_b = 0;
  // While both have work all along: b has 60 reads of 16 KiB, and what is posted ahead is not counted.
  while (bytes_b < uint64_t{50} * 16384) {
    const FilePiece piece = rig.ring.End();
    (piece.slot == b_slot ? bytes_b : bytes_a) += piece.length;
    rig.Run({&a, &b});
  }
  EXPECT_NEAR(static_cast<double>(bytes_a), static_cast<double>(bytes_b), 6.0 * kChunk);
}

TEST(Fair, SixtyFourQueuesOfOneUidAreNoAdvantage) {
  EngineOptions options = DispatcherRig::SmallOptions();
  options.max_in_flight_per_session = 1024;
  DispatcherRig rig(options, 4, 2);
  Tenant a = rig.Open(kAlice), b = rig.Open(kBob);
  std::vector<Tenant> queues(64);
  for (Tenant& queue : queues) {
    queue.session = a.session;
    queue.lease = a.lease;
    queue.handle = a.handle;
    rig.AddQueue(queue, 16, 32);
    for (uint64_t i = 0; i < 4; ++i) queue.client->Submit(queue.Read(i, kChunk));
    rig.dispatcher.Ready(*queue.queue);
  }
  for (uint64_t i = 0; i < 30; ++i) b.client->Submit(b.Read(i, kChunk));
  rig.Run({&b});
  const uint32_t b_slot = b.lease.blocks[0].block.value();
  int pieces_a = 0, pieces_b = 0;
  while (pieces_b < 20) {
    ++(rig.ring.End().slot == b_slot ? pieces_b : pieces_a);
    rig.Run({&b});
  }
  EXPECT_NEAR(pieces_a, pieces_b, 6);
  while (!rig.ring.posted().empty()) {
    rig.ring.End();
    rig.Run({&b});
  }
  for (const Tenant& queue : queues) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.client->Poll());
  }
}

TEST(Fair, WhoDoesNotReadCompletionsWaitsAlone) {
  DispatcherRig rig;
  Tenant a = rig.Open(kAlice, 1, 16, 16), b = rig.Open(kBob);
  for (uint64_t i = 0; i < 16; ++i) rig.Submit(a, Nop(i));
  for (uint64_t i = 16; i < 20; ++i) a.client->Submit(Nop(i));
  rig.dispatcher.Ready(*a.queue);
  rig.Run({&a, &b});
  EXPECT_EQ(a.queue->place, ServedQueue::Place::kNoRoom);
  EXPECT_EQ(a.queue->submitted.read(), 16U);
  for (uint64_t i = 0; i < 100; ++i) {
    rig.Submit(b, Nop(i));
    ASSERT_EQ(rig.Only(b).user_data, i);
  }
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(a.client->Poll()->user_data, i);
  rig.dispatcher.Ready(*a.queue);
  rig.Run({&a});
  for (uint64_t i = 16; i < 20; ++i) EXPECT_EQ(a.client->Poll()->user_data, i);
}

TEST(Fair, ASessionHasSoManyInFlight) {
  DispatcherRig rig(DispatcherRig::SmallOptions(), 64);
  int told = 0;
  rig.shared.session_has_room = [&told] { ++told; };
  Tenant a = rig.Open(kAlice), b = rig.Open(kBob);
  for (uint64_t i = 0; i < 30; ++i) a.client->Submit(a.Read(i, 4096));
  rig.dispatcher.Ready(*a.queue);
  rig.dispatcher.Round(rig.now_ns);
  EXPECT_EQ(rig.ring.posted().size(), 16U);
  EXPECT_EQ(a.queue->place, ServedQueue::Place::kNoPlace);
  EXPECT_EQ(told, 0);
  rig.Submit(b, Nop(1));
  EXPECT_EQ(rig.Only(b).user_data, 1U);
  rig.ring.End();
  rig.dispatcher.Round(rig.now_ns);
  EXPECT_GE(told, 1);
  while (!rig.ring.posted().empty()) {
    rig.ring.End();
    rig.dispatcher.Ready(*a.queue);
    rig.Run({&a});
  }
  for (uint64_t i = 0; i < 30; ++i) EXPECT_TRUE(a.client->Poll());
}

TEST(Fair, AStuckSlowDeviceStopsNobody) {
  DispatcherRig rig;
  Tenant a = rig.Open(kAlice), b = rig.Open(kBob);
  a.file->facts_to_set().slow = true;
  for (uint64_t i = 0; i < 16; ++i) a.client->Submit(a.Read(i, kBlock.count()));
  rig.Run({&a});
  EXPECT_FALSE(rig.slow.orders.empty());
  for (uint64_t i = 0; i < 20; ++i) {
    rig.Submit(b, b.Read(i, kChunk));
    rig.ring.End();
    ASSERT_EQ(rig.Only(b).bytes, kChunk);
  }
}

}  // namespace
}  // namespace ubd
