// The bookkeeping of backings that stand behind no block, step by step and with made times.
#include "daemon/memory/backing_store.h"

#include <gtest/gtest.h>

#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

std::unique_ptr<MemfdBacking> NewBacking() {
  absl::StatusOr<std::unique_ptr<MemfdBacking>> made =
      MemfdBacking::Create({.pool = "t", .bytes = ub::KiB(4), .page_size = ub::KiB(4)});
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(*made);
}

MonoTime At(int milliseconds) { return MonoTime(absl::Seconds(100) + absl::Milliseconds(milliseconds)); }

// Two blocks and one in reserve, all there.
class Store : public ::testing::Test {
 protected:
  Store() {
    store_.OnWork([this] { ++pokes_; });
    store_.CountInstalled();
    store_.CountInstalled();
    store_.AddClean(NewBacking());
  }
  bool MustMake(int at = 0) { return std::holds_alternative<MakeJob>(store_.NextJob(At(at))); }
  bool MustFree() { return std::holds_alternative<FreeJob>(store_.NextJob(At(0))); }
  // When making may be tried again.
  MonoTime Idle(int at = 0) {
    ProvisionJob job = store_.NextJob(At(at));
    NoJob* none = std::get_if<NoJob>(&job);
    EXPECT_NE(none, nullptr);
    return none != nullptr ? none->retry : MonoTime();
  }
  BackingStore store_{3, 1};
  int pokes_ = 0;
};

TEST_F(Store, FullStoreHasNothingToDoAndNoTimer) { EXPECT_EQ(Idle(), MonoTime::Never()); }

TEST_F(Store, FreesBeforeItMakesAndNeverExceedsTheLimit) {
  ASSERT_NE(store_.TakeClean(), nullptr);
  EXPECT_EQ(Idle(), MonoTime::Never()) << "three backings stand somewhere: no fourth";
  store_.Discard({NewBacking(), BlockId(0), {}});
  EXPECT_TRUE(MustFree());
  EXPECT_EQ(Idle(), MonoTime::Never()) << "not yet freed";
  store_.Freed();
  EXPECT_TRUE(MustMake());
  EXPECT_EQ(Idle(), MonoTime::Never()) << "one is being made";
  EXPECT_EQ(store_.Total(), 3U);
}

TEST_F(Store, BlockThatWaitsLongestComesFirstAndBeforeTheReserve) {
  ASSERT_NE(store_.TakeClean(), nullptr);
  EXPECT_EQ(store_.TakeCleanOrWait(BlockId(7)), nullptr);
  EXPECT_EQ(store_.TakeCleanOrWait(BlockId(8)), nullptr);
  std::vector<std::optional<BlockId>> served;
  for (int i = 0; i < 3; ++i) {
    store_.Freed();
    ASSERT_TRUE(MustMake());
    std::unique_ptr<MemfdBacking> made = NewBacking();
    served.push_back(store_.Made(made));
    EXPECT_EQ(made == nullptr, !served.back().has_value());
  }
  EXPECT_EQ(served, (std::vector<std::optional<BlockId>>{BlockId(7), BlockId(8), std::nullopt}));
  EXPECT_EQ(store_.Clean(), 1U);
}

TEST_F(Store, CleanOneThatCameMeanwhileIsTakenInsteadOfWaiting) {
  EXPECT_NE(store_.TakeCleanOrWait(BlockId(7)), nullptr);
  store_.Freed();
  ASSERT_TRUE(MustMake());
  std::unique_ptr<MemfdBacking> made = NewBacking();
  EXPECT_EQ(store_.Made(made), std::nullopt) << "block 7 has one already";
}

TEST_F(Store, FailedMakeIsRetriedWithGrowingPausesOrWhenSomethingIsFreed) {
  store_.TakeClean();
  store_.Freed();
  ASSERT_TRUE(MustMake());
  store_.MakeFailed(At(0));
  EXPECT_EQ(Idle(9), At(10));
  ASSERT_TRUE(MustMake(10));
  store_.MakeFailed(At(10));
  EXPECT_EQ(Idle(29), At(30));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(MustMake(1000000 + i * 10000));
    store_.MakeFailed(At(1000000 + i * 10000));
  }
  EXPECT_EQ(Idle(1190000), At(1195000)) << "at most 5 s";
  store_.Freed();
  EXPECT_TRUE(MustMake(1190000));
}

TEST_F(Store, RetiredBackingIsFreedOnlyWhenNobodyHoldsIt) {
  std::unique_ptr<MemfdBacking> old = NewBacking();
  ub::UniqueFd holder = *ReopenMemfd(old->fd(), Access::kReadOnly);
  store_.Retire({std::move(old), BlockId(1), {Uid(5)}});
  EXPECT_EQ(store_.SweepRetired(), 1U);
  EXPECT_EQ(Idle(), MonoTime::Never());
  const int pokes = pokes_;
  holder.reset();
  EXPECT_EQ(store_.SweepRetired(), 0U);
  EXPECT_GT(pokes_, pokes);
  ProvisionJob job = store_.NextJob(At(0));
  ASSERT_TRUE(std::holds_alternative<FreeJob>(job));
  EXPECT_TRUE(std::get<FreeJob>(job).old.was_retired);
  EXPECT_EQ(std::get<FreeJob>(job).old.charge, (Charge{Uid(5)}));
}

}  // namespace
}  // namespace ubd::testing
