// Batches and handles on a queue, with the daemon's answers made by the test.
#include "ub/queue.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "proto/wire/error.h"
#include "tests/unit/client/test_client.h"

namespace ub {
namespace {

class QueueTest : public testing::Test {
 protected:
  void SetUp() override {
    Open(8);
    lease_ = *client_.Acquire({.bytes = MiB(2)});
    int fd = ::memfd_create("file", MFD_CLOEXEC);
    file_ = *File::FromDescriptor(client_, fd);
    ::close(fd);
  }
  void Open(uint32_t depth) {
    queue_.reset();
    auto queue = Queue::Open(client_, {.depth = depth});
    ASSERT_TRUE(queue.ok()) << queue.status();
    queue_ = *std::move(queue);
  }
  RingDaemon& daemon() { return *client_.transfers.daemons.back(); }
  Op Read(uint64_t tag, uint64_t length = 4096) {
    return ReadOp(tag, file_, Bytes(0), lease_, Bytes(0), Bytes(length));
  }
  absl::Status Submit(const std::vector<Op>& ops) { return queue_->Submit(ops); }
  std::vector<Completion> Poll() {
    std::array<Completion, 64> out;
    size_t count = queue_->Poll(absl::MakeSpan(out));
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  TestClient client_;
  Lease lease_;
  File file_;
  std::unique_ptr<Queue> queue_;
};

TEST_F(QueueTest, EntryOrCompletionMistranslated) {
  Lease other = *client_.Acquire({.bytes = MiB(4)});
  Op copy = CopyOp(77, lease_, Bytes(64), other, MiB(3), Bytes(100),
                   {.path = PathPolicy::kStagedOnly, .deadline = absl::Microseconds(1500)});
  ASSERT_TRUE(Submit({ReadOp(5, file_, Bytes(8192), lease_, Bytes(4096), Bytes(512)), copy}).ok());
  wire::SubmitEntry read = daemon().Take();
  EXPECT_EQ(read.op, static_cast<uint8_t>(wire::Op::kRead));
  EXPECT_EQ(read.lease, lease_.id().value());
  EXPECT_EQ(read.generation, lease_.generation().value());
  EXPECT_EQ(read.target, 7u);
  EXPECT_EQ(read.offset, 4096u);
  EXPECT_EQ(read.length, 512u);
  EXPECT_EQ(read.target_offset, 8192u);
  wire::SubmitEntry taken = daemon().Take();
  EXPECT_EQ(taken.op, static_cast<uint8_t>(wire::Op::kCopy));
  EXPECT_EQ(taken.target_lease, other.id().value());
  EXPECT_EQ(taken.target, other.generation().value());
  EXPECT_EQ(taken.target_offset, MiB(3).count());
  EXPECT_EQ(taken.deadline_ms, 2u);
  EXPECT_EQ(taken.policy, static_cast<uint8_t>(PathPolicy::kStagedOnly));
  EXPECT_EQ(queue_->in_flight(), 2u);
  wire::CompletionEntry done = daemon().Done(read);
  done.bytes = 100;
  done.path = 1;
  done.flags = wire::kCompletionRegistered;
  done.from = static_cast<uint8_t>(MemoryKind::kFile);
  done.to = static_cast<uint8_t>(MemoryKind::kHost);
  done.device_ns = 1234;
  daemon().Answer(done);
  wire::CompletionEntry failed = daemon().Done(taken, wire::TransferError::kPathUnavailable);
  failed.path_reason = static_cast<uint8_t>(PathReason::kUnaligned);
  daemon().Answer(failed);
  std::vector<Completion> got = Poll();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].tag, 5u);
  EXPECT_TRUE(got[0].status.ok());
  EXPECT_EQ(got[0].bytes, Bytes(100));
  EXPECT_EQ(got[0].path, Path::kDirect);
  EXPECT_TRUE(got[0].registered);
  EXPECT_EQ(got[0].from, MemoryKind::kFile);
  EXPECT_EQ(got[0].device_time, absl::Nanoseconds(1234));
  EXPECT_EQ(got[1].tag, 77u);
  EXPECT_EQ(ReasonOf(got[1].status), Reason::kPathUnavailable);
  EXPECT_EQ(DetailOf(got[1].status, "path_reason"), "unaligned");
  EXPECT_EQ(queue_->in_flight(), 0u);
}

TEST_F(QueueTest, BatchTakenInPart) {
  std::vector<Op> ops(9, NopOp(1));
  EXPECT_EQ(ReasonOf(queue_->Submit(ops)), Reason::kQueueFull);
  EXPECT_EQ(daemon().ring().Waiting(), 0u);
  ops.pop_back();
  ASSERT_TRUE(queue_->Submit(ops).ok());
  EXPECT_EQ(queue_->Room(), 0u);
  EXPECT_EQ(ReasonOf(Submit({NopOp(1)})), Reason::kQueueFull);
  daemon().Serve();
  EXPECT_EQ(queue_->Room(), 1u);
  ops = {NopOp(1), Read(2)};
  ops[1].lease = nullptr;
  EXPECT_EQ(ReasonOf(queue_->Submit(ops)), Reason::kBadEntry);
  EXPECT_EQ(daemon().ring().Waiting(), 7u);
}

TEST_F(QueueTest, OpsThatNameNothingOrSomebodyElses) {
  TestClient other;
  Lease foreign = *other.Acquire({.bytes = MiB(2)});
  int fd = ::memfd_create("file", MFD_CLOEXEC);
  File foreign_file = *File::FromDescriptor(other, fd);
  ::close(fd);
  for (const Op& op : {ReadOp(1, File(), Bytes(0), lease_, Bytes(0), Bytes(1)),
                       ReadOp(1, file_, Bytes(0), Lease(), Bytes(0), Bytes(1)), ReadOp(1, file_, Bytes(0), Slot()),
                       FsyncOp(1, File()), CopyOp(1, lease_, Bytes(0), Lease(), Bytes(0), Bytes(1)),
                       CopyOp(1, lease_, Bytes(0), foreign, Bytes(0), Bytes(1)),
                       ReadOp(1, file_, Bytes(0), foreign, Bytes(0), Bytes(1)), FsyncOp(1, foreign_file)}) {
    EXPECT_EQ(ReasonOf(Submit({op})), Reason::kBadEntry);
  }
  EXPECT_EQ(daemon().ring().Waiting(), 0u);
}

TEST_F(QueueTest, UnreadCompletionsWithoutEnd) {
  // One submits and never polls: a bound comes.
  int taken = 0;
  while (Submit({NopOp(1)}).ok() && taken < 1000) {
    ++taken;
    wire::SubmitEntry entry;
    if (daemon().ring().Take(entry)) daemon().Answer(daemon().Done(entry));
  }
  EXPECT_LE(taken, 24);
  EXPECT_EQ(Poll().size(), 16u);
}

TEST_F(QueueTest, CompletionsOfNothingBelieved) {
  ASSERT_TRUE(Submit({Read(1), Read(2)}).ok());
  wire::SubmitEntry first = daemon().Take();
  daemon().Take();
  wire::CompletionEntry lie = daemon().Done(first);
  lie.bytes = 4097;  // more than was asked for: a caller would use bytes behind its memory
  daemon().Answer(lie);
  std::vector<Completion> got = Poll();
  ASSERT_EQ(got.size(), 2u);
  for (const Completion& done : got) EXPECT_EQ(ReasonOf(done.status), Reason::kInDoubt);
  EXPECT_EQ(ReasonOf(Submit({NopOp(1)})), Reason::kQueueBroken);

  Open(8);
  ASSERT_TRUE(Submit({Read(1)}).ok());
  wire::SubmitEntry entry = daemon().Take();
  daemon().Answer(daemon().Done(entry));
  EXPECT_EQ(Poll().size(), 1u);
  ASSERT_TRUE(Submit({Read(2)}).ok());
  daemon().Take();
  daemon().Answer(daemon().Done(entry));  // the old one again
  got = Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].tag, 2u);
  EXPECT_EQ(ReasonOf(got[0].status), Reason::kInDoubt);
}

TEST_F(QueueTest, SessionEndTellsTwiceOrNever) {
  ASSERT_TRUE(Submit({Read(1), Read(2), Read(3)}).ok());
  daemon().Serve();
  client_.transfers.EndAll();
  std::array<Completion, 8> out;
  auto count = queue_->Wait(absl::MakeSpan(out), 8, absl::Seconds(30));
  ASSERT_TRUE(count.ok());
  ASSERT_EQ(*count, 3u);
  // What was completed before the end counts.
  EXPECT_TRUE(out[0].status.ok());
  EXPECT_EQ(out[0].tag, 1u);
  EXPECT_EQ(out[1].status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(out[2].status), Reason::kInDoubt);
  EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(queue_->in_flight(), 0u);
  EXPECT_EQ(ReasonOf(Submit({NopOp(1)})), Reason::kSessionEnded);
  EXPECT_EQ(ReasonOf(queue_->Cancel(1)), Reason::kSessionEnded);
}

TEST_F(QueueTest, ClosedOrBrokenQueueKeepsItsWaiter) {
  for (auto [state, reason] : {std::pair{wire::QueueState::kClosed, Reason::kSessionEnded},
                               std::pair{wire::QueueState::kBroken, Reason::kQueueBroken}}) {
    Open(8);
    ASSERT_TRUE(Submit({Read(9)}).ok());
    std::thread closer([&, state = state] { daemon().ring().Close(state); });
    std::array<Completion, 1> out;
    auto count = queue_->Wait(absl::MakeSpan(out), 1, absl::Seconds(30));
    closer.join();
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(ReasonOf(out[0].status), Reason::kInDoubt);
    EXPECT_EQ(ReasonOf(Submit({NopOp(1)})), reason);
    EXPECT_EQ(queue_->Room(), 0u);
  }
}

TEST_F(QueueTest, DeadlineAnswerEndsTheTransfer) {
  Op op = Read(4);
  op.entry.deadline_ms = 5;
  ASSERT_TRUE(Submit({op}).ok());
  wire::SubmitEntry entry = daemon().Take();
  wire::CompletionEntry late = daemon().Done(entry, wire::TransferError::kDeadline);
  late.flags = wire::kCompletionMore;
  daemon().Answer(late);
  std::vector<Completion> got = Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(got[0].more);
  EXPECT_EQ(ReasonOf(got[0].status), Reason::kTransferDeadline);
  EXPECT_EQ(queue_->in_flight(), 1u);
  daemon().Answer(daemon().Done(entry));
  got = Poll();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].tag, 4u);
  EXPECT_FALSE(got[0].more);
  EXPECT_EQ(queue_->in_flight(), 0u);
}

TEST_F(QueueTest, WaitThatGivesUpLosesCompletions) {
  ASSERT_TRUE(Submit({Read(1), Read(2), Read(3)}).ok());
  daemon().Serve();
  daemon().Serve();
  std::array<Completion, 3> out;
  auto count = queue_->Wait(absl::MakeSpan(out), 3, absl::Milliseconds(30));
  EXPECT_EQ(count.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(queue_->in_flight(), 3u);
  daemon().Serve();
  std::vector<Completion> got = Poll();
  ASSERT_EQ(got.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].tag, i + 1);
  // Nothing is in flight: no reason to wait.
  count = queue_->Wait(absl::MakeSpan(out), 1, absl::InfiniteDuration());
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 0u);
}

TEST_F(QueueTest, CancelOfTheWrongTransfer) {
  ASSERT_TRUE(Submit({Read(1), Read(2)}).ok());
  daemon().Take();
  wire::SubmitEntry second = daemon().Take();
  EXPECT_EQ(ReasonOf(queue_->Cancel(3)), Reason::kNoSuchTransfer);
  ASSERT_TRUE(queue_->Cancel(2).ok());
  wire::SubmitEntry cancel = daemon().Take();
  EXPECT_EQ(cancel.op, static_cast<uint8_t>(wire::Op::kCancel));
  EXPECT_EQ(cancel.offset, second.user_data);
  daemon().Answer(daemon().Done(cancel));
  daemon().Answer(daemon().Done(second, wire::TransferError::kCancelled));
  std::vector<Completion> got = Poll();  // the cancel itself has none for the caller
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].tag, 2u);
  EXPECT_EQ(got[0].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ReasonOf(queue_->Cancel(2)), Reason::kNoSuchTransfer);
  EXPECT_EQ(queue_->stats().completed, 1u);
}

TEST_F(QueueTest, FileClosedUnderItsTransfers) {
  {
    File copy = file_;
    file_ = File();
    ASSERT_TRUE(Submit({FsyncOp(1, copy)}).ok());
  }
  EXPECT_TRUE(client_.transfers.closed_files.empty());
  daemon().Serve();
  EXPECT_EQ(Poll().size(), 1u);
  EXPECT_EQ(client_.transfers.closed_files, std::vector<uint32_t>{7});
}

TEST_F(QueueTest, ForkedChildTouchesTheRing) {
  ASSERT_TRUE(Submit({Read(1)}).ok());
  auto transfer = queue_->Read(file_, Bytes(0), *client_.Acquire({.bytes = MiB(2)}));
  ASSERT_TRUE(transfer.ok());
  int status = InChild([&] {
    std::array<Completion, 1> out;
    bool refused = ReasonOf(Submit({NopOp(1)})) == Reason::kForked && Poll().empty() && queue_->Room() == 0 &&
                   ReasonOf(queue_->Wait(absl::MakeSpan(out), 1, absl::ZeroDuration()).status()) == Reason::kForked &&
                   ReasonOf(queue_->Cancel(1)) == Reason::kForked && !transfer->Done() &&
                   ReasonOf(transfer->Wait().status) == Reason::kForked &&
                   ReasonOf(transfer->Cancel()) == Reason::kForked;
    *transfer = Transfer();
    queue_.reset();
    file_ = File();
    return refused ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(daemon().ring().Waiting(), 2u);
  EXPECT_TRUE(client_.transfers.closed_files.empty());
}

}  // namespace
}  // namespace ub
