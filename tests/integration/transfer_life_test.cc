// What happens to transfers when something else happens meanwhile.
#include <sys/mman.h>

#include "tests/integration/transfer_fixture.h"

namespace ubd::testing {
namespace {

class TransferLifeTest : public TransferTest {
 protected:
  absl::Status Revoke(ub::LeaseId lease) {
    grpc::ClientContext context;
    ub::v1::RevokeLeaseRequest request;
    request.set_lease(lease.value());
    ub::v1::RevokeLeaseResponse response;
    grpc::Status status = watch_->admin().RevokeLease(&context, request, &response);
    return status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message());
  }
};

TEST_F(TransferLifeTest, ThousandsInFlightMixedUp) {
  constexpr uint64_t kPiece = 4096;
  constexpr uint64_t kPieces = 4096;
  std::string text = Pattern(kPiece * kPieces, 11);
  ub::File file = Open(disk_.Write("file", text), O_RDONLY);
  ub::Lease lease = Get(kPiece * kPieces);
  queue_ = OpenQueue({.depth = 4096});
  std::vector<Op> ops;
  for (uint64_t i = 0; i < kPieces; ++i) {
    // Backwards, so that neighbours differ.
    ops.push_back(ub::ReadOp(i, file, Bytes((kPieces - 1 - i) * kPiece), lease, Bytes(i * kPiece), Bytes(kPiece),
                             {.path = i % 2 == 0 ? PathPolicy::kDirectOnly : PathPolicy::kStagedOnly}));
  }
  for (int round = 0; round < 3; ++round) {
    std::memset(lease.data(), 0, lease.size());
    ASSERT_TRUE(queue_->Submit(ops).ok());
    std::vector<int> seen(kPieces);
    for (const Completion& done : Await(kPieces)) {
      ASSERT_TRUE(done.status.ok()) << done.status;
      ASSERT_EQ(done.bytes, Bytes(kPiece));
      ASSERT_EQ(done.path, done.tag % 2 == 0 ? Path::kDirect : Path::kStaged);
      ++seen[done.tag];
    }
    for (int times : seen) ASSERT_EQ(times, 1);
    for (uint64_t i = 0; i < kPieces; ++i) {
      ASSERT_EQ(std::memcmp(lease.data() + i * kPiece, text.data() + (kPieces - 1 - i) * kPiece, kPiece), 0) << i;
    }
  }
}

TEST_F(TransferLifeTest, SixtyFourQueuesOneTooMany) {
  std::string text = Pattern(64 * KiB(64).count(), 12);
  ub::File file = Open(disk_.Write("file", text), O_RDONLY);
  ub::Lease lease = Get(4 << 20);
  queue_.reset();
  std::vector<std::unique_ptr<ub::Queue>> queues;
  for (int i = 0; i < 64; ++i) queues.push_back(OpenQueue({.depth = 16}));
  EXPECT_EQ(ReasonOf(ub::Queue::Open(*client_, {}).status()), Reason::kTooManyQueues);
  for (uint64_t i = 0; i < 64; ++i) {
    Op op = ub::ReadOp(i, file, Bytes(i << 16), lease, Bytes(i << 16), KiB(64));
    ASSERT_TRUE(queues[i]->Submit({&op, 1}).ok());
  }
  for (uint64_t i = 0; i < 64; ++i) {
    std::array<Completion, 1> done;
    ASSERT_TRUE(queues[i]->Wait(absl::MakeSpan(done), 1, kBound).ok());
    EXPECT_EQ(done[0].tag, i);
    EXPECT_TRUE(done[0].status.ok()) << done[0].status;
  }
  EXPECT_TRUE(Text(lease, 0, text.size()) == text);
  // A closed one makes room, at once.
  queues.pop_back();
  EXPECT_NE(OpenQueue(), nullptr);
}

TEST_F(TransferLifeTest, MemoryOfDroppedTransfersLost) {
  ub::File file = Open(disk_.Write("file", Pattern(1 << 20, 13)), O_RDONLY);
  for (int round = 0; round < 20; ++round) {
    ub::Lease lease = Get();
    Op op = ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(1));
    ASSERT_TRUE(queue_->Submit({&op, 1}).ok());
    ASSERT_TRUE(lease.Release().ok());
    auto handle = queue_->Read(file, Bytes(0), Get());
    ASSERT_TRUE(handle.ok()) << handle.status();
    if (round % 2 == 0) {
      Await(1);
      EXPECT_EQ(handle->Wait().bytes, MiB(1));
    } else {
      queue_ = OpenQueue();  // the old one goes with both in flight
    }
  }
  queue_.reset();
  ASSERT_TRUE(client_->DropCache().ok());
  EXPECT_TRUE(watch_->WaitUntil([&] { return client_->DropCache().ok() && watch_->AllFree(); }, kBound).ok());
}

TEST_F(TransferLifeTest, HandlesReadTheWrongSlot) {
  std::string text = Pattern(16 * KiB(256).count(), 14);
  ub::File file = Open(disk_.Write("file", text), O_RDONLY);
  auto slots = ub::SlotPool::Create(*client_, {.slot = KiB(256), .bytes = MiB(4)});
  ASSERT_TRUE(slots.ok()) << slots.status();
  std::vector<ub::Transfer> transfers;
  for (uint64_t i = 0; i < 16; ++i) {
    auto transfer = queue_->Read(file, KiB(256 * i), (*slots)->Take(), {.path = PathPolicy::kDirectOnly});
    ASSERT_TRUE(transfer.ok()) << transfer.status();
    transfers.push_back(*std::move(transfer));
  }
  for (size_t i = 16; i-- > 0;) {
    Completion done = transfers[i].Wait(kBound);
    ASSERT_TRUE(done.status.ok()) << done.status;
    EXPECT_EQ(done.path, Path::kDirect);
    EXPECT_EQ(std::memcmp(transfers[i].slot().data(), text.data() + i * KiB(256).count(), KiB(256).count()), 0);
  }
}

TEST_F(TransferLifeTest, RevokeInFlight) {
  ub::File file = Open(disk_.Write("file", Pattern(2 << 20, 15)), O_RDONLY);
  for (int round = 0; round < 10; ++round) {
    ub::Lease lease = Get();
    std::vector<Op> ops(16, ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(2)));
    ASSERT_TRUE(queue_->Submit(ops).ok());
    ASSERT_TRUE(Revoke(lease.id()).ok());
    for (const Completion& done : Await(16)) {
      EXPECT_THAT(ReasonOf(done.status),
                  ::testing::AnyOf(Reason::kNone, Reason::kNoSuchLease, Reason::kCancelled, Reason::kStaleGeneration))
          << done.status;
    }
    EXPECT_EQ(ReasonOf(Do(ops[0]).status), Reason::kNoSuchLease);
  }
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(TransferLifeTest, PunchedBlockUnderAReadAndWrite) {
  ub::File file = Open(disk_.Write("file", Pattern(2 << 20, 16)));
  ub::Lease lease = Get();
  for (int round = 0; round < 5; ++round) {
    for (PathPolicy policy : {PathPolicy::kDirectOnly, PathPolicy::kStagedOnly}) {
      std::array<Op, 2> ops = {ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(2), {.path = policy}),
                               ub::WriteOp(2, lease, Bytes(0), MiB(2), file, Bytes(0), {.path = policy})};
      ASSERT_TRUE(queue_->Submit(ops).ok());
      ::madvise(lease.data(), lease.size(), MADV_REMOVE);
      for (const Completion& done : Await(2)) {
        EXPECT_THAT(ReasonOf(done.status), ::testing::AnyOf(Reason::kNone, Reason::kMemoryTampered)) << done.status;
      }
    }
  }
  EXPECT_TRUE(daemon_->alive());
  lease = ub::Lease();
  ASSERT_TRUE(client_->DropCache().ok());
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(TransferLifeTest, FileCutShortUnderAReader) {
  std::string path = disk_.Write("file", Pattern(2 << 20, 17));
  ub::File file = Open(path);
  ub::Lease lease = Get();
  std::vector<Op> ops(32, ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(2)));
  ASSERT_TRUE(queue_->Submit(ops).ok());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  for (const Completion& done : Await(32)) {
    EXPECT_TRUE(done.status.ok()) << done.status;
    EXPECT_GE(done.bytes, Bytes(4096));
  }
  EXPECT_EQ(Do(ops[0]).bytes, Bytes(4096));
}

TEST_F(TransferLifeTest, DeadlinesAndCancelsLeaveMemoryInUse) {
  ub::File file = Open(disk_.Write("file", Pattern(8 << 20, 18)), O_RDONLY);
  ub::Lease lease = Get(8 << 20);
  std::vector<Op> ops;
  for (uint64_t i = 0; i < 64; ++i) {
    ops.push_back(ub::ReadOp(i, file, Bytes(0), lease, Bytes(0), MiB(8), {.deadline = absl::Milliseconds(1)}));
  }
  ASSERT_TRUE(queue_->Submit(ops).ok());
  for (uint64_t i = 0; i < 64; i += 2) {
    EXPECT_THAT(ReasonOf(queue_->Cancel(i)), ::testing::AnyOf(Reason::kNone, Reason::kNoSuchTransfer));
  }
  std::vector<int> last(64);
  int late = 0;
  while (queue_->in_flight() > 0) {
    std::array<Completion, 16> out;
    auto count = queue_->Wait(absl::MakeSpan(out), 1, kBound);
    ASSERT_TRUE(count.ok()) << count.status();
    for (size_t i = 0; i < *count; ++i) {
      EXPECT_THAT(ReasonOf(out[i].status),
                  ::testing::AnyOf(Reason::kNone, Reason::kTransferDeadline, Reason::kCancelled))
          << out[i].status;
      if (out[i].more) ++late;
      if (!out[i].more) ++last[out[i].tag];
    }
  }
  for (int times : last) EXPECT_EQ(times, 1);
  EXPECT_GT(late, 0);  // 512 MiB do not come in a millisecond
}

TEST_F(TransferLifeTest, DaemonGoesUnderTransfers) {
  ub::File file = Open(disk_.Write("file", Pattern(8 << 20, 19)), O_RDONLY);
  ub::Lease lease = Get(8 << 20);
  std::vector<Op> ops(64, ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(8)));
  ASSERT_TRUE(queue_->Submit(ops).ok());
  daemon_->process().Kill();
  std::vector<Completion> done = Await(64);
  int in_doubt = 0;
  for (const Completion& one : done) {
    EXPECT_THAT(ReasonOf(one.status), ::testing::AnyOf(Reason::kNone, Reason::kInDoubt)) << one.status;
    in_doubt += ReasonOf(one.status) == Reason::kInDoubt ? 1 : 0;
  }
  EXPECT_GT(in_doubt, 0);
  EXPECT_EQ(ReasonOf(queue_->Submit(ops)), Reason::kSessionEnded);
  EXPECT_EQ(ReasonOf(ub::Queue::Open(*client_, {}).status()), Reason::kSessionEnded);
  EXPECT_FALSE(ub::File::Open(*client_, "/etc/hostname", O_RDONLY).ok());
  watch_.reset();
}

TEST_F(TransferLifeTest, FullFileSystem) {
  // A file system of its own, small and full.
  TempDir place;
  std::string image = place.Write("image", "");
  ASSERT_EQ(::truncate(image.c_str(), 8 << 20), 0);
  std::string mount_point = place / "mount";
  ASSERT_EQ(::mkdir(mount_point.c_str(), 0755), 0);
  auto made = RunCommand({.argv = {"/usr/sbin/mkfs.ext4", "-q", "-m", "0", image}}, kBound);
  auto mounted = RunCommand({.argv = {"/usr/bin/mount", "-o", "loop", image, mount_point}}, kBound);
  if (!made.ok() || made->code != 0 || !mounted.ok() || mounted->code != 0) GTEST_SKIP() << "needs loop devices";
  {
    ub::File file = Open(mount_point + "/file", O_RDWR | O_CREAT);
    EXPECT_FALSE(file.served_locally()) << file.file_system();
    ub::Lease lease = Get(8 << 20);
    for (PathPolicy policy : {PathPolicy::kStagedOnly, PathPolicy::kPreferDirect}) {
      Completion done = Do(ub::WriteOp(1, lease, Bytes(0), MiB(8), file, Bytes(0), {.path = policy}));
      EXPECT_EQ(ReasonOf(done.status), Reason::kNoSpace) << done.status;
      EXPECT_LT(done.bytes, MiB(8));
    }
  }
  queue_.reset();
  client_.reset();
  auto unmounted = RunCommand({.argv = {"/usr/bin/umount", "-l", mount_point}}, kBound);
  EXPECT_TRUE(unmounted.ok() && unmounted->code == 0);
}

}  // namespace
}  // namespace ubd::testing
