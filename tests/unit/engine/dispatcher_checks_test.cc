// What is wrong with an entry is answered at once, with its own error, and leaves nothing pinned.
#include <gtest/gtest.h>

#include "tests/unit/engine/dispatcher_rig.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::Op;
using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::PathReason;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

class Checks : public ::testing::Test {
 protected:
  TransferError Try(const SubmitEntry& entry) {
    rig.Submit(a, entry);
    EXPECT_EQ(rig.ring.posts(), 0U);
    EXPECT_TRUE(rig.copy.orders.empty());
    EXPECT_EQ(rig.InFlight(a), 0U);
    const CompletionEntry completion = rig.Only(a);
    EXPECT_EQ(completion.user_data, entry.user_data);
    EXPECT_EQ(completion.bytes, 0U);
    return ErrorIn(completion);
  }
  DispatcherRig rig;
  Tenant a = rig.Open(kAlice, 2);
};

TEST_F(Checks, MalformedEntries) {
  SubmitEntry entry = Nop(5);
  EXPECT_EQ(Try(entry), TransferError::kOk);
  entry.op = 6;
  EXPECT_EQ(Try(entry), TransferError::kBadEntry);
  entry = Nop(5);
  entry.policy = 4;
  EXPECT_EQ(Try(entry), TransferError::kBadEntry);
  entry = Nop(5);
  entry.reserved = 1;
  EXPECT_EQ(Try(entry), TransferError::kBadEntry);
}

TEST_F(Checks, Leases) {
  SubmitEntry entry = a.Read(1, 4096);
  entry.lease += 1000;
  EXPECT_EQ(Try(entry), TransferError::kNoSuchLease);
  entry = a.Read(1, 4096);
  ++entry.generation;
  EXPECT_EQ(Try(entry), TransferError::kStaleGeneration);
  EXPECT_EQ(Try(a.Read(1, 4096, 2 * kBlock.count() - 4095)), TransferError::kOutOfRange);
  EXPECT_EQ(Try(a.Read(1, 4096, UINT64_MAX - 4095)), TransferError::kOutOfRange);
  EXPECT_EQ(Try(a.Read(1, UINT64_MAX, 1)), TransferError::kOutOfRange);
}

TEST_F(Checks, AnothersLeaseDoesNotExist) {
  Tenant b = rig.Open(kBob);
  SubmitEntry entry = b.Read(1, 4096);
  entry.target = a.handle;
  EXPECT_EQ(Try(entry), TransferError::kNoSuchLease);
}

TEST_F(Checks, ReadOnlyShares) {
  Tenant b = rig.Open(kBob);
  Grant shared = rig.core.ShareWith(a.session->id, a.lease, b.session->id, kBob);
  b.lease = shared;
  rig.Submit(b, b.Read(1, 4096));
  EXPECT_EQ(ErrorIn(rig.Only(b)), TransferError::kReadOnly);
  rig.Submit(b, b.Entry(Op::kWrite, 2, 0, 4096));
  EXPECT_EQ(rig.ring.posted().size(), 1U) << "writing from it is reading it";
  rig.ring.End();
  EXPECT_EQ(ErrorIn(rig.Only(b)), TransferError::kOk);
}

TEST_F(Checks, Files) {
  SubmitEntry entry = a.Read(1, 4096);
  entry.target = 77;
  EXPECT_EQ(Try(entry), TransferError::kNoSuchFile);
  entry = a.Read(1, 4096);
  entry.target_offset = uint64_t{INT64_MAX} - 4094;
  EXPECT_EQ(Try(entry), TransferError::kOutOfRange);
  a.file->facts_to_set().readable = false;
  EXPECT_EQ(Try(a.Read(1, 4096)), TransferError::kReadOnly);
  a.file->facts_to_set().writable = false;
  EXPECT_EQ(Try(a.Entry(Op::kWrite, 1, 0, 4096)), TransferError::kReadOnly);
}

TEST_F(Checks, DirectOnlySaysWhyNot) {
  SubmitEntry entry = a.Read(1, 100);
  entry.policy = static_cast<uint8_t>(PathPolicy::kDirectOnly);
  rig.Submit(a, entry);
  const CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kPathUnavailable);
  EXPECT_EQ(PathIn(completion), Path::kNone);
  EXPECT_EQ(ReasonIn(completion), PathReason::kUnaligned);
  const auto counts = rig.shared.counts.Read();
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].failed, 1U);
}

TEST_F(Checks, ZeroLengthIsCheckedThenDone) {
  EXPECT_EQ(Try(a.Read(1, 0)), TransferError::kOk);
  EXPECT_EQ(Try(a.Read(1, 0, 2 * kBlock.count() + 1)), TransferError::kOutOfRange);
}

TEST_F(Checks, CopiesOntoThemselves) {
  SubmitEntry entry = a.Entry(Op::kCopy, 1, 0, 8192);
  entry.target_lease = entry.lease;
  entry.target = entry.generation;
  entry.target_offset = 8191;
  EXPECT_EQ(Try(entry), TransferError::kOverlap);
  entry.offset = 16383;
  entry.target_offset = 8192;
  EXPECT_EQ(Try(entry), TransferError::kOverlap);
  entry.target = entry.generation + 1;
  EXPECT_EQ(Try(entry), TransferError::kStaleGeneration);
}

TEST_F(Checks, CancelOfNothing) {
  SubmitEntry entry = Nop(1);
  entry.op = static_cast<uint8_t>(Op::kCancel);
  entry.offset = 99;
  EXPECT_EQ(Try(entry), TransferError::kNoSuchTransfer);
}

TEST_F(Checks, StoppingRefusesEverything) {
  rig.shared.stopping = true;
  EXPECT_EQ(Try(a.Read(1, 4096)), TransferError::kStopping);
  EXPECT_EQ(Try(Nop(2)), TransferError::kStopping);
}

TEST_F(Checks, EveryErrorGivesItsRoomBack) {
  for (int i = 0; i < 1000; ++i) {
    SubmitEntry entry = i % 2 == 0 ? a.Read(1, UINT64_MAX) : Nop(1);
    entry.deadline_ms = static_cast<uint32_t>(i % 3);
    Try(entry);
  }
  EXPECT_EQ(a.queue->ring.reserved(), 0U);
  EXPECT_EQ(a.queue->completed.read(), 1000U);
  EXPECT_EQ(a.queue->failed.read(), 500U);
}

}  // namespace
}  // namespace ubd
