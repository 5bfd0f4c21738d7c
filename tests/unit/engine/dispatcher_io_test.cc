// Pieces, and what their results make of a transfer.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/engine/dispatcher_rig.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::MemoryKind;
using ub::wire::Op;
using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::PathReason;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

constexpr uint64_t kChunk = 65536;

class Io : public ::testing::Test {
 protected:
  // Ends every piece that is posted, in full, until none is.
  void EndAll() {
    while (!rig.ring.posted().empty()) {
      rig.ring.End();
      rig.Run({&a});
    }
  }
  DispatcherRig rig;
  Tenant a = rig.Open(kAlice, 2);
};

TEST_F(Io, OnePieceOneCompletion) {
  rig.Submit(a, a.Read(42, 8192, 512));
  ASSERT_EQ(rig.ring.posted().size(), 1U);
  const FilePiece piece = rig.ring.posted()[0];
  EXPECT_EQ(piece.kind, FilePiece::Kind::kRead);
  EXPECT_EQ(piece.fd, a.file->direct_fd());
  EXPECT_EQ(piece.length, 8192U);
  EXPECT_EQ(piece.address, static_cast<char*>(rig.memory.Locate(a.lease.blocks[0].block).address) + 512);
  EXPECT_EQ(rig.InFlight(a), 1U);
  EXPECT_EQ(rig.dispatcher.in_flight(), 1U);
  EXPECT_EQ(a.queue->in_flight.read(), 1U);
  rig.ring.End();
  const CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(completion.user_data, 42U);
  EXPECT_EQ(ErrorIn(completion), TransferError::kOk);
  EXPECT_EQ(completion.bytes, 8192U);
  EXPECT_EQ(PathIn(completion), Path::kDirect);
  EXPECT_EQ(completion.from, static_cast<uint8_t>(MemoryKind::kFile));
  EXPECT_EQ(completion.to, static_cast<uint8_t>(MemoryKind::kHost));
  EXPECT_EQ(completion.flags, ub::wire::kCompletionRegistered);
  EXPECT_EQ(rig.InFlight(a), 0U);
  EXPECT_TRUE(rig.memory.touched.empty()) << "by a fixed buffer";
}

TEST_F(Io, UnregisteredMemoryIsSaidSo) {
  for (uint32_t slot = 0; slot < 4; ++slot) rig.ring.Unregister(slot);
  rig.Submit(a, a.Read(1, 8192));
  rig.ring.End();
  EXPECT_EQ(rig.Only(a).flags, 0);
  EXPECT_FALSE(rig.memory.touched.empty());
}

TEST_F(Io, SplitsAtChunksAndBlocks) {
  SubmitEntry entry = a.Read(1, 3 * kChunk, kBlock.count() - kChunk - 512);
  entry.target_offset = 4096;
  rig.Submit(a, entry);
  const std::vector<FilePiece> pieces = rig.ring.posted();
  ASSERT_EQ(pieces.size(), 4U);
  uint64_t at = 0;
  const uint64_t expected[] = {kChunk, 512, kChunk, kChunk - 512};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pieces[i].length, expected[i]) << i;
    EXPECT_EQ(pieces[i].offset, 4096 + at) << i;
    const size_t block = i < 2 ? 0 : 1;
    EXPECT_EQ(pieces[i].slot, a.lease.blocks[block].block.value()) << i;
    at += pieces[i].length;
  }
  EndAll();
  EXPECT_EQ(rig.Only(a).bytes, 3 * kChunk);
}

TEST_F(Io, DepthIsNeverExceeded) {
  rig.Submit(a, a.Read(1, 2 * kBlock.count()));
  EXPECT_EQ(rig.ring.Room(), 0U);
  EXPECT_EQ(rig.ring.posted().size(), 16U);
  EndAll();
  EXPECT_EQ(rig.ring.posts(), 2 * kBlock.count() / kChunk);
  EXPECT_EQ(rig.Only(a).bytes, 2 * kBlock.count());
}

TEST_F(Io, TheEndOfTheFile) {
  rig.Submit(a, a.Read(1, 4 * kChunk));
  rig.ring.End();
  rig.ring.End(1000);  // a direct read that ends where none can go on
  rig.ring.End(0);
  rig.ring.End(0);
  CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kOk);
  EXPECT_EQ(completion.bytes, kChunk + 1000);
  rig.Submit(a, a.Read(2, kChunk));
  rig.ring.End(0);
  completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kOk);
  EXPECT_EQ(completion.bytes, 0U);
}

TEST_F(Io, WhatWasReadBeyondAShortPieceDoesNotCount) {
  rig.Submit(a, a.Read(1, 3 * kChunk));
  rig.ring.End(FakeRing::kAll, 2);  // the last first, in full
  rig.Run({&a});
  rig.ring.End(-EIO, 1);  // and one beyond the end fails
  rig.Run({&a});
  rig.ring.End(700, 0);
  const CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(completion.bytes, 700U);
  EXPECT_EQ(ErrorIn(completion), TransferError::kOk);
}

TEST_F(Io, AShortReadInTheMiddleGoesOn) {
  rig.Submit(a, a.Read(1, kChunk));
  rig.ring.End(4096);
  rig.Run({&a});
  ASSERT_EQ(rig.ring.posted().size(), 1U);
  EXPECT_EQ(rig.ring.posted()[0].offset, 4096U);
  EXPECT_EQ(rig.ring.posted()[0].length, kChunk - 4096);
  rig.ring.End();
  EXPECT_EQ(rig.Only(a).bytes, kChunk);
}

TEST_F(Io, AgainMeansAgain) {
  rig.Submit(a, a.Read(1, kChunk));
  for (int error : {EAGAIN, EINTR, EAGAIN}) {
    rig.ring.End(-error);
    rig.Run({&a});
    ASSERT_EQ(rig.ring.posted().size(), 1U);
  }
  rig.ring.End();
  EXPECT_EQ(rig.Only(a).bytes, kChunk);
}

TEST_F(Io, AgainForEverIsAnError) {
  rig.Submit(a, a.Read(1, kChunk));
  int tries = 0;
  for (; !rig.ring.posted().empty() && tries < 5000; ++tries) {
    rig.ring.End(-EAGAIN);
    rig.Run({&a});
  }
  EXPECT_LT(tries, 2000);
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kDeviceError);
}

TEST_F(Io, ErrorsAreTyped) {
  const std::pair<int, TransferError> kCases[] = {{EIO, TransferError::kDeviceError},
                                                  {ENOSPC, TransferError::kNoSpace},
                                                  {EDQUOT, TransferError::kNoSpace},
                                                  {EFBIG, TransferError::kNoSpace},
                                                  {EFAULT, TransferError::kMemoryTampered}};
  for (auto [error, expected] : kCases) {
    rig.Submit(a, a.Entry(Op::kWrite, 1, 0, 2 * kChunk));
    rig.ring.End();
    rig.ring.End(-error);
    const CompletionEntry completion = rig.Only(a);
    EXPECT_EQ(ErrorIn(completion), expected) << error;
    EXPECT_EQ(completion.detail, error);
    EXPECT_EQ(completion.bytes, kChunk) << "what came before it was written";
    EXPECT_EQ(rig.InFlight(a), 0U);
  }
}

TEST_F(Io, AnErrorStopsThePosting) {
  rig.Submit(a, a.Read(1, 2 * kBlock.count()));
  rig.ring.End(-EIO);
  rig.Run({&a});
  EXPECT_EQ(rig.ring.posted().size(), 15U) << "nothing new";
  EndAll();
  EXPECT_EQ(rig.Only(a).bytes, 0U);
}

TEST_F(Io, ADirectReadThatIsRefusedIsStaged) {
  rig.Submit(a, a.Read(1, 2 * kChunk));
  rig.ring.End(-EINVAL);
  rig.ring.End();
  rig.Run({&a});
  ASSERT_EQ(rig.ring.posted().size(), 1U);
  EXPECT_EQ(rig.ring.posted()[0].fd, a.file->staged_fd());
  rig.ring.End();
  const CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(completion.bytes, 2 * kChunk);
  EXPECT_EQ(PathIn(completion), Path::kStaged);
  EXPECT_EQ(ReasonIn(completion), PathReason::kDirectRefused);
}

TEST_F(Io, DirectOnlyNeverFallsBack) {
  SubmitEntry entry = a.Read(1, kChunk);
  entry.policy = static_cast<uint8_t>(PathPolicy::kDirectOnly);
  rig.Submit(a, entry);
  rig.ring.End(-EINVAL);
  const CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kPathUnavailable);
  EXPECT_EQ(PathIn(completion), Path::kNone);
  EXPECT_EQ(ReasonIn(completion), PathReason::kDirectRefused);
}

TEST_F(Io, FlagsThatChangeMeanwhileCannotBeAttested) {
  rig.Submit(a, a.Read(1, kChunk));
  a.file->changed = true;
  rig.ring.End();
  CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kOk);
  EXPECT_EQ(PathIn(completion), Path::kStaged);
  EXPECT_EQ(ReasonIn(completion), PathReason::kFlagsChanged);
  a.file->changed = false;
  SubmitEntry entry = a.Read(2, kChunk);
  entry.policy = static_cast<uint8_t>(PathPolicy::kDirectOnly);
  rig.Submit(a, entry);
  a.file->changed = true;
  rig.ring.End();
  completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kPathUnavailable);
  EXPECT_EQ(ReasonIn(completion), PathReason::kFlagsChanged);
}

TEST_F(Io, WithoutADescriptorForItStagedBecomesDirect) {
  a.file->DropStaged();
  rig.Submit(a, a.Read(1, 512));  // below the minimum
  EXPECT_EQ(rig.ring.posted().at(0).fd, a.file->direct_fd());
  rig.ring.End();
  EXPECT_EQ(PathIn(rig.Only(a)), Path::kDirect);
  SubmitEntry entry = a.Read(2, kChunk);
  entry.policy = static_cast<uint8_t>(PathPolicy::kStagedOnly);
  rig.Submit(a, entry);
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kPathUnavailable);
}

TEST_F(Io, FsyncIsOnePieceWithoutBytes) {
  rig.Submit(a, a.Entry(Op::kFsync, 9, 0, 0));
  ASSERT_EQ(rig.ring.posted().size(), 1U);
  EXPECT_EQ(rig.ring.posted()[0].kind, FilePiece::Kind::kFsync);
  rig.ring.End();
  CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(ErrorIn(completion), TransferError::kOk);
  EXPECT_EQ(completion.bytes, 0U);
  rig.Submit(a, a.Entry(Op::kFsync, 9, 0, 0));
  rig.ring.End(-EIO);
  EXPECT_EQ(ErrorIn(rig.Only(a)), TransferError::kDeviceError);
}

TEST_F(Io, SlowFilesGoElsewhere) {
  a.file->facts_to_set().slow = true;
  rig.Submit(a, a.Read(1, 2 * kChunk));
  EXPECT_EQ(rig.ring.posts(), 0U);
  ASSERT_EQ(rig.slow.orders.size(), 2U);
  std::vector<PieceResult> results;
  for (const PieceOrder& order : rig.slow.orders) {
    results.push_back({order.piece.tag, static_cast<int32_t>(order.piece.length), true});
  }
  rig.dispatcher.TakeResults(results, rig.now_ns);
  EXPECT_EQ(rig.Only(a).bytes, 2 * kChunk);
}

TEST_F(Io, CopiesGoTwoPiecesAtATime) {
  SubmitEntry entry = a.Entry(Op::kCopy, 1, 100, 5 * kChunk);
  entry.target_lease = entry.lease;
  entry.target = entry.generation;
  entry.target_offset = kBlock.count() - kChunk / 2;
  rig.Submit(a, entry);
  uint64_t moved = 0;
  size_t handed = 0;
  while (handed < rig.copy.orders.size()) {
    EXPECT_LE(rig.copy.orders.size() - handed, 2U);
    const PieceOrder order = rig.copy.orders[handed++];
    EXPECT_EQ(order.from, static_cast<char*>(rig.memory.Locate(a.lease.blocks[0].block).address) + 100 + moved);
    moved += order.piece.length;
    const PieceResult result = {order.piece.tag, static_cast<int32_t>(order.piece.length), false};
    rig.dispatcher.TakeResults({&result, 1}, rig.now_ns);
    rig.Run({&a});
  }
  EXPECT_EQ(handed, 6U) << "one border of a block is in the way";
  const CompletionEntry completion = rig.Only(a);
  EXPECT_EQ(completion.bytes, 5 * kChunk);
  EXPECT_EQ(PathIn(completion), Path::kDirect);
  EXPECT_EQ(completion.from, static_cast<uint8_t>(MemoryKind::kHost));
  EXPECT_EQ(completion.flags, 0);
}

}  // namespace
}  // namespace ubd
