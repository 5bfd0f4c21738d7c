// Fresh backings, the reserve, and what is left when there are none; for small and huge pages.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "daemon/memory/mono_now.h"
#include "tests/unit/memory/reclaim_fixture.h"

namespace ubd::testing {
namespace {

using ::testing::ElementsAre;

using Recycle = Reclaim;

TEST_P(Recycle, ReserveIsUsedAndRefilled) {
  Boot(2, 1);
  EXPECT_EQ(Reserve(), 1U);
  for (size_t round = 1; round <= 3; ++round) {
    Order(0, true);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, round));
    EXPECT_TRUE(Eventually([&] { return Reserve() == 1; }));
  }
  EXPECT_EQ(sink_.Count(Event::kRecycling), 0U);
}

TEST_P(Recycle, WithoutReserveTheOldBackingIsFreedFirst) {
  Boot(2, 0);
  Write(0, 'a');
  Order(0, true);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(sink_.Count(Event::kRecycling), 1U);
  EXPECT_EQ(FirstByte(0), 0);
}

TEST_P(Recycle, HoarderStarvesTheReserveNeverTheMachine) {
  Boot(3, 1);
  std::vector<ub::UniqueFd> hoard;
  for (uint32_t block = 0; block < 3; ++block) hoard.push_back(Open(block));
  const size_t full = MemfdMaps();
  EXPECT_EQ(full, 4U);
  for (uint32_t block = 0; block < 3; ++block) Order(block, true);
  ASSERT_TRUE(sink_.WaitFor(Event::kRecycling, 2));
  EXPECT_EQ(sink_.Count(Event::kRetired), 3U);
  EXPECT_EQ(sink_.Count(Event::kFresh), 1U);
  EXPECT_FALSE(memory_->OpenForHolder(BlockId(2), Access::kReadWrite).ok());
  EXPECT_FALSE(sink_.WaitFor(Event::kFresh, 2, absl::Milliseconds(50)));
  EXPECT_EQ(MemfdMaps(), full);
  hoard.clear();
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh, 3));
  EXPECT_TRUE(sink_.WaitFor(Event::kFreed, 3));
  EXPECT_TRUE(Eventually([&] { return Reserve() == 1 && MemfdMaps() == full; }));
}

// The client gave the pages back behind the daemon's back, and somebody else has them now: no signal, and the block
// comes back when memory does.
TEST_P(Recycle, PunchedPagesThatSomebodyElseTookAreWaitedFor) {
  if (GetParam() != ub::MiB(2)) return;  // small pages cannot be used up in a test
  Boot(1, 0);
  ub::UniqueFd client = Open(0);
  ASSERT_EQ(
      ::fallocate(client.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(kBlock.count())), 0);
  client.reset();
  absl::StatusOr<std::unique_ptr<MemfdBacking>> hog =
      MemfdBacking::Create({.pool = "hog", .bytes = kBlock * FreeHugePages(), .page_size = GetParam()});
  ASSERT_TRUE(hog.ok()) << hog.status();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kRecycling));
  EXPECT_FALSE(sink_.WaitFor(Event::kFresh, 1, absl::Milliseconds(50)));
  hog->reset();
  EXPECT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(FirstByte(0), 0);
}

// Times that each of the memory's own threads went to sleep, by thread.
std::map<std::string, uint64_t> Wakeups() {
  std::map<std::string, uint64_t> counts;
  SystemFiles files;
  for (const std::string& task : files.List("/proc/self/task")) {
    std::string status = files.Read("/proc/self/task/" + task + "/status").value_or("");
    if (status.find("ubd-") == std::string::npos) continue;
    counts[task] = FindNumber(status, "voluntary_ctxt_switches").value_or(0);
  }
  return counts;
}

TEST_P(Recycle, IdleThreadsDoNotWake) {
  Boot(2, 1);
  {
    ub::UniqueFd held = Open(0);
    Order(0);
    ASSERT_TRUE(sink_.WaitFor(Event::kRetired));
  }
  ASSERT_TRUE(sink_.WaitFor(Event::kFreed));
  ASSERT_TRUE(Eventually([&] { return Reserve() == 1; }));
  ::usleep(50000);
  const std::map<std::string, uint64_t> before = Wakeups();
  EXPECT_GE(before.size(), 2U);
  ::usleep(300000);
  EXPECT_EQ(Wakeups(), before);
}

TEST_P(Recycle, RecyclingIsToldBeforeFree) {
  Boot(4, 0);
  for (int round = 1; round <= 10; ++round) {
    for (uint32_t block = 0; block < 4; ++block) Order(block, true);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, static_cast<size_t>(round) * 4));
  }
  std::map<uint32_t, int> open;
  for (const Seen& seen : sink_.All()) {
    int& recycling = open[seen.block.value()];
    recycling += seen.event == Event::kRecycling ? 1 : -1;
    ASSERT_TRUE(recycling == 0 || recycling == 1);
  }
}

TEST_P(Recycle, OrdersBeforeStartAreWorkedOffThen) {
  fds_ = OpenFds();
  absl::StatusOr<std::unique_ptr<Memory>> made =
      CreateHostMemory({SmallPool("p", GetParam(), 2, 1)}, nullptr, RealDeps());
  ASSERT_TRUE(made.ok()) << made.status();
  memory_ = std::move(*made);
  Order(0);
  Order(1);
  EXPECT_TRUE(sink_.All().empty());
  memory_->Start(&sink_);
  EXPECT_TRUE(sink_.WaitFor(Event::kFree, 2));
}

TEST_P(Recycle, UntrustedKernelMeansFreshBackingAlwaysAndSaysWhy) {
  HostMemoryDeps deps = RealDeps();
  deps.distrust = "F_SETLEASE is blind here";
  Boot(2, 1, deps);
  EXPECT_EQ(memory_->ReuseTest(), "F_SETLEASE is blind here");
  for (size_t round = 1; round <= 3; ++round) {
    Write(0, 'a');
    Order(0);
    ASSERT_TRUE(sink_.WaitFor(Event::kFresh, round));
    EXPECT_EQ(FirstByte(0), 0);
  }
  EXPECT_EQ(sink_.Count(Event::kFree), 0U);
}

TEST_P(Recycle, BlocksAreNumberedThroughThePools) {
  BootWith({SmallPool("a", GetParam(), 2, 1), SmallPool("b", GetParam(), 3, 1)});
  Order(4);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(sink_.All()[0].block, BlockId(4));
  EXPECT_TRUE(memory_->OpenForHolder(BlockId(4), Access::kReadOnly).ok());
  EXPECT_FALSE(memory_->OpenForHolder(BlockId(5), Access::kReadOnly).ok());
}

TEST_P(Recycle, ManyThreadsOpenAndReclaimWithoutAFalseAnswer) {
  Boot(4, 2);
  std::vector<std::thread> threads;
  for (uint32_t block = 0; block < 4; ++block) {
    threads.emplace_back([&, block] {
      RecordingSink unused;
      for (int i = 0; i < 200; ++i) {
        ub::UniqueFd fd = Open(block);
        ASSERT_TRUE(fd.valid());
        fd.reset();
        Order(block);
        // Nobody else orders this block, so its own events count.
        ASSERT_TRUE(Eventually([&] {
          size_t free = 0;
          for (const Seen& seen : sink_.All()) free += seen.block == BlockId(block) ? 1 : 0;
          return free == static_cast<size_t>(i) + 1;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sink_.Count(Event::kFree), 800U) << "a block that nobody held was taken for held";
}

INSTANTIATE_TEST_SUITE_P(Pages, Recycle, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
