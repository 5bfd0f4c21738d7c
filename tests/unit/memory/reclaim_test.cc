// The life of a block's backing: reused, recycled, retired, freed; for small and huge pages.
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

TEST_P(Reclaim, UntouchedBlockIsReusedWithItsBytes) {
  Boot(2, 1);
  EXPECT_EQ(memory_->ReuseTest(), "sole-holder");
  Write(0, 'a');
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(FirstByte(0), 'a');
  EXPECT_EQ(sink_.All().size(), 1U);
}

TEST_P(Reclaim, HeldBlockGetsFreshBackingAndTheOldOneIsChargedUntilItIsLetGo) {
  Boot(2, 1);
  Write(0, 'a');
  ub::UniqueFd held = Open(0);
  Mapping mapping(held.get(), kBlock, PROT_READ);
  held.reset();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(FirstByte(0), 0);
  EXPECT_EQ(mapping.data()[0], 'a');
  EXPECT_EQ(sink_.Count(Event::kRetired), 1U);
  EXPECT_FALSE(sink_.WaitFor(Event::kFreed, 1, absl::Milliseconds(50))) << "freed while somebody holds it";
  mapping.Unmap();
  ASSERT_TRUE(sink_.WaitFor(Event::kFreed));
  for (const Seen& seen : sink_.All()) {
    if (seen.event != Event::kRetired && seen.event != Event::kFreed) continue;
    EXPECT_THAT(seen.charge, ElementsAre(Uid(1001)));
  }
}

TEST_P(Reclaim, ReadOnlyHolderCountsToo) {
  Boot(1, 1);
  ub::UniqueFd held = Open(0, Access::kReadOnly);
  Order(0);
  EXPECT_TRUE(sink_.WaitFor(Event::kFresh));
}

TEST_P(Reclaim, MustBeFreshNeverReusesAnUntouchedBlock) {
  Boot(1, 1);
  Write(0, 'a');
  Order(0, /*must_be_fresh=*/true);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_EQ(FirstByte(0), 0);
  EXPECT_EQ(sink_.Count(Event::kRetired), 0U) << "nobody held it";
}

TEST_P(Reclaim, GraceLetsAnObedientClientUnmap) {
  Boot(1, 1);
  Write(0, 'a');
  ub::UniqueFd held = Open(0);
  Order(0, false, kSoon);
  EXPECT_FALSE(sink_.WaitFor(Event::kFree, 1, absl::Milliseconds(30)));
  held.reset();
  ASSERT_TRUE(sink_.WaitFor(Event::kFree));
  EXPECT_EQ(FirstByte(0), 'a');
}

TEST_P(Reclaim, GraceEndsForAClientThatDoesNotUnmap) {
  Boot(1, 1);
  ub::UniqueFd held = Open(0);
  const MonoTime before = MonoNow();
  Order(0, false, absl::Milliseconds(40));
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  EXPECT_GE(MonoNow() - before, absl::Milliseconds(40));
}

TEST_P(Reclaim, PunchedBlockGetsFreshBackingAndIsReportedWherePagesStay) {
  Boot(1, 1);
  ub::UniqueFd client = Open(0);
  ASSERT_EQ(
      ::fallocate(client.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(GetParam().count())),
      0);
  client.reset();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  // Unlocked small pages may have been swapped out: no proof, no audit line.
  const bool huge = GetParam() == ub::MiB(2);
  EXPECT_EQ(sink_.Count(Event::kTampering), huge ? 1U : 0U);
  EXPECT_EQ(sink_.Count(Event::kFree), 0U);
}

TEST_P(Reclaim, PunchedLockedBlockIsReported) {
  if (GetParam() != ub::KiB(4)) return;  // huge pages need no locking
  HostPoolConfig pool = SmallPool("p", GetParam(), 1, 1);
  pool.lock_pages = Demand::kRequired;
  BootWith({pool});
  EXPECT_EQ(memory_->Facts()[0].locked, "yes");
  ub::UniqueFd client = Open(0);
  ASSERT_EQ(::fallocate(client.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
  client.reset();
  Order(0);
  ASSERT_TRUE(sink_.WaitFor(Event::kFresh));
  ASSERT_EQ(sink_.Count(Event::kTampering), 1U);
  EXPECT_EQ(sink_.All()[0].what, "1 of 512 pages were removed, the first at offset 8192");
}

INSTANTIATE_TEST_SUITE_P(Pages, Reclaim, ::testing::Values(ub::KiB(4), ub::MiB(2)), PageName);

}  // namespace
}  // namespace ubd::testing
