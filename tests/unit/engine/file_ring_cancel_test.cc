// Pieces that do not end by themselves: reads of an empty pipe stand for a device that does not answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "daemon/engine/file_ring.h"
#include "tests/unit/engine/file_testing.h"
#include "tests/unit/engine/ring_testing.h"

namespace ubd::testing {
namespace {

class StuckRing : public ::testing::Test {
 protected:
  static constexpr uint32_t kDepth = 8;
  void SetUp() override {
    auto made = FileRing::Create({.depth = kDepth, .slots = 2});
    ASSERT_TRUE(made.ok()) << made.status();
    ring_ = *std::move(made);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
  }
  void PostReads(uint64_t count) {
    for (uint64_t tag = 1; tag <= count; ++tag) {
      ring_->Post({FilePiece::Kind::kRead, reader_.get(), memory_.data(), 8, 0, 0, tag});
    }
  }
  Memory4K memory_{4096};
  ub::UniqueFd reader_, writer_;
  std::unique_ptr<FileRing> ring_;
};

TEST_F(StuckRing, NothingIsReapedBeforeItsTime) {
  PostReads(2);
  ring_->Submit();
  FileResult result;
  EXPECT_EQ(ring_->Reap({&result, 1}), 0U);
  EXPECT_EQ(ring_->in_flight(), 2U);
  ASSERT_EQ(::write(writer_.get(), "12345678", 8), 8);
  EXPECT_EQ(Finish(*ring_, 1).size(), 1U);
  EXPECT_EQ(ring_->in_flight(), 1U);
}

TEST_F(StuckRing, CancelEndsThePieceAndNoOther) {
  PostReads(3);
  ring_->Submit();
  ring_->Cancel(2);
  std::vector<FileResult> results = Finish(*ring_, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].tag, 2U);
  EXPECT_EQ(results[0].result, -ECANCELED);
  EXPECT_EQ(ring_->in_flight(), 2U);
}

TEST_F(StuckRing, CancelBeforeSubmit) {
  PostReads(1);
  ring_->Cancel(1);
  std::vector<FileResult> results = Finish(*ring_, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].result, -ECANCELED);
}

TEST_F(StuckRing, CancelOfNothingIsNothing) {
  ring_->Cancel(99);
  ring_->Submit();
  PostReads(1);
  ASSERT_EQ(::write(writer_.get(), "12345678", 8), 8);
  std::vector<FileResult> results = Finish(*ring_, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].tag, 1U);
  EXPECT_EQ(results[0].result, 8);
  EXPECT_EQ(ring_->Room(), kDepth);
}

// More cancels at once than the ring's queues have room for, with every piece in flight.
TEST_F(StuckRing, AFloodOfCancelsLosesNothing) {
  PostReads(kDepth);
  ring_->Submit();
  for (int i = 0; i < 100; ++i) {
    for (uint64_t tag = kDepth; tag >= 1; --tag) ring_->Cancel(tag);
  }
  std::set<uint64_t> tags;
  for (const FileResult& result : Finish(*ring_, kDepth)) {
    EXPECT_EQ(result.result, -ECANCELED);
    tags.insert(result.tag);
  }
  EXPECT_EQ(tags.size(), kDepth);
  EXPECT_EQ(ring_->in_flight(), 0U);
  // Cancels that still wait hit nothing of what comes later under other tags.
  ring_->Post({FilePiece::Kind::kRead, reader_.get(), memory_.data(), 8, 0, 0, 1000});
  ASSERT_EQ(::write(writer_.get(), "12345678", 8), 8);
  std::vector<FileResult> results = Finish(*ring_, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].result, 8);
}

// A cancel that had to wait for room comes too late for its piece: it must not hit the next one with that tag.
TEST_F(StuckRing, ALateCancelHitsNoPieceThatCameAfter) {
  auto made = FileRing::Create({.depth = 2, .slots = 1});
  ASSERT_TRUE(made.ok()) << made.status();
  ring_ = *std::move(made);
  ASSERT_EQ(::write(writer_.get(), "1234567812345678", 16), 16);
  PostReads(2);
  ring_->Submit();
  for (uint64_t tag : {98, 99, 1}) ring_->Cancel(tag);
  ring_->Submit();
  FileResult result;
  ASSERT_EQ(ring_->Reap({&result, 1}), 1U);
  ASSERT_EQ(result.tag, 1U);
  PostReads(1);
  ASSERT_EQ(ring_->Reap({&result, 1}), 1U);
  ASSERT_EQ(result.tag, 2U);
  ring_->Submit();
  EXPECT_EQ(ring_->Reap({&result, 1}), 0U);
  ASSERT_EQ(::write(writer_.get(), "12345678", 8), 8);
  std::vector<FileResult> results = Finish(*ring_, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].result, 8);
}

// A fixed buffer goes from the table while a piece uses it: the caller does not wait, the piece keeps its pages.
TEST_F(StuckRing, UnregisterDoesNotWaitForAStuckPiece) {
  ASSERT_TRUE(ring_->Register(0, memory_.data(), Bytes(4096)).ok());
  ASSERT_TRUE(ring_->Post({FilePiece::Kind::kRead, reader_.get(), memory_.data(), 8, 0, 0, 7}));
  ring_->Submit();
  ring_->Unregister(0);
  Memory4K fresh(4096);
  ASSERT_TRUE(ring_->Register(0, fresh.data(), Bytes(4096)).ok());
  ASSERT_EQ(::write(writer_.get(), "12345678", 8), 8);
  std::vector<FileResult> results = Finish(*ring_, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].result, 8);
  EXPECT_EQ(std::string(memory_.data(), 8), "12345678");
  EXPECT_EQ(fresh.data()[0], '\0');
}

TEST_F(StuckRing, GoesAwayWithPiecesInFlight) {
  PostReads(kDepth);
  ring_->Submit();
  ring_.reset();
}

}  // namespace
}  // namespace ubd::testing
