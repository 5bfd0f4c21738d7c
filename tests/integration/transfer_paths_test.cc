// Every byte by every path, and what is said about it.
#include "tests/integration/transfer_fixture.h"

namespace ubd::testing {
namespace {

class TransferPathsTest : public TransferTest {};

constexpr size_t kFileSize = (5 << 20) + 12345;

TEST_F(TransferPathsTest, DirectReadBringsOtherBytes) {
  std::string text = Pattern(kFileSize, 1);
  ub::File file = Open(disk_.Write("file", text), O_RDONLY);
  ASSERT_TRUE(file.direct()) << file.file_system() << " " << ub::PathReasonName(file.why_not());
  EXPECT_EQ(file.size(), Bytes(kFileSize));
  ub::Lease lease = Get(3 * kBlock);
  Completion done = Do(ub::ReadOp(1, file, MiB(1), lease, MiB(1), MiB(4), {.path = PathPolicy::kDirectOnly}));
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.path, Path::kDirect);
  EXPECT_EQ(done.reason, PathReason::kNone);
  EXPECT_EQ(done.bytes, MiB(4));
  EXPECT_EQ(done.from, ub::MemoryKind::kFile);
  EXPECT_EQ(done.to, ub::MemoryKind::kHost);
  EXPECT_GT(done.device_time, absl::ZeroDuration());
  EXPECT_TRUE(Text(lease, 1 << 20, 4 << 20) == text.substr(1 << 20, 4 << 20));
  EXPECT_EQ(lease.data()[(1 << 20) - 1], std::byte{0});
  EXPECT_EQ(lease.data()[5 << 20], std::byte{0});
}

TEST_F(TransferPathsTest, PathNotAsAskedFor) {
  std::string text = Pattern(kFileSize, 2);
  ub::File file = Open(disk_.Write("file", text), O_RDONLY);
  ub::Lease lease = Get();
  struct Case {
    PathPolicy policy;
    uint64_t at, offset, length;
    Path path;
    PathReason reason;
  };
  for (const Case& c :
       std::vector<Case>{{PathPolicy::kPreferDirect, 0, 0, 1 << 20, Path::kDirect, PathReason::kNone},
                         {PathPolicy::kStagedOnly, 0, 0, 1 << 20, Path::kStaged, PathReason::kForced},
                         {PathPolicy::kPreferDirect, 0, 0, 4096, Path::kStaged, PathReason::kBelowMinDirect},
                         {PathPolicy::kDirectOnly, 0, 0, 4096, Path::kDirect, PathReason::kNone},
                         {PathPolicy::kPreferDirect, 1, 0, 1 << 20, Path::kStaged, PathReason::kUnaligned},
                         {PathPolicy::kPreferDirect, 0, 1, 1 << 20, Path::kStaged, PathReason::kUnaligned},
                         {PathPolicy::kPreferDirect, 0, 0, (1 << 20) - 1, Path::kStaged, PathReason::kUnaligned},
                         {PathPolicy::kDefault, 0, 0, 1 << 20, Path::kDirect, PathReason::kNone}}) {
    std::memset(lease.data(), 0, lease.size());
    Completion done = Do(ub::ReadOp(1, file, Bytes(c.at), lease, Bytes(c.offset), Bytes(c.length), {.path = c.policy}));
    EXPECT_TRUE(done.status.ok()) << done.status;
    EXPECT_EQ(done.path, c.path) << c.at << " " << c.offset << " " << c.length;
    EXPECT_EQ(done.reason, c.reason) << c.at << " " << c.offset << " " << c.length;
    EXPECT_TRUE(Text(lease, c.offset, c.length) == text.substr(c.at, c.length));
  }
  Completion refused = Do(ub::ReadOp(1, file, Bytes(1), lease, Bytes(0), MiB(1), {.path = PathPolicy::kDirectOnly}));
  EXPECT_EQ(ReasonOf(refused.status), Reason::kPathUnavailable);
  EXPECT_EQ(ub::DetailOf(refused.status, "path_reason"), "unaligned");
  // And as the queue was opened.
  queue_ = OpenQueue({.path = PathPolicy::kStagedOnly});
  EXPECT_EQ(Do(ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(1))).reason, PathReason::kForced);
}

TEST_F(TransferPathsTest, WritesLostOrMisplaced) {
  std::string text = Pattern(kBlock * 2, 3);
  std::string path = disk_.Write("file", "");
  ub::File file = Open(path);
  ub::Lease lease = Get(kBlock * 2);
  Put(lease, text);
  Completion done = Do(ub::WriteOp(1, lease, Bytes(0), Bytes(lease.size()), file, Bytes(0)));
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.bytes, Bytes(lease.size()));
  EXPECT_EQ(done.from, ub::MemoryKind::kHost);
  EXPECT_EQ(done.to, ub::MemoryKind::kFile);
  // Odd ones over the middle, which cannot go directly.
  done = Do(ub::WriteOp(2, lease, Bytes(77), Bytes(500001), file, Bytes(300003)));
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.reason, PathReason::kUnaligned);
  EXPECT_TRUE(Do(ub::FsyncOp(3, file)).status.ok());
  std::string expected = text;
  expected.replace(300003, 500001, text, 77, 500001);
  EXPECT_TRUE(ReadFile(path) == expected);
}

TEST_F(TransferPathsTest, SizesAtTheEdges) {
  std::string text = Pattern(kFileSize, 4);
  ub::File file = Open(disk_.Write("file", text), O_RDONLY);
  ub::Lease lease = Get(4 * kBlock);
  std::mt19937 random(5);
  std::vector<std::pair<uint64_t, uint64_t>> ranges = {{0, 0},
                                                       {0, 1},
                                                       {kFileSize - 1, 1},
                                                       {kFileSize - 1, 100},
                                                       {kFileSize, 10},
                                                       {kFileSize + 5000, 10},
                                                       {kFileSize - 12345, 1 << 20},
                                                       {4096, 4097},
                                                       {4095, 8192},
                                                       {0, kFileSize + 1},
                                                       {1 << 20, 4 << 20}};
  for (int i = 0; i < 40; ++i) ranges.emplace_back(random() % kFileSize, random() % (kFileSize / 2));
  for (auto [at, length] : ranges) {
    uint64_t offset = random() % (lease.size() - length);
    std::memset(lease.data(), 0x5a, lease.size());
    Completion done = Do(ub::ReadOp(1, file, Bytes(at), lease, Bytes(offset), Bytes(length)));
    uint64_t there = at < kFileSize ? std::min<uint64_t>(length, kFileSize - at) : 0;
    ASSERT_TRUE(done.status.ok()) << done.status << " " << at << "+" << length;
    ASSERT_EQ(done.bytes.count(), there) << at << "+" << length;
    ASSERT_TRUE(Text(lease, offset, there) == (there == 0 ? "" : text.substr(at, there))) << at << "+" << length;
    // Nothing beside it.
    ASSERT_TRUE(offset == 0 || lease.data()[offset - 1] == std::byte{0x5a});
    ASSERT_TRUE(offset + length == lease.size() || lease.data()[offset + length] == std::byte{0x5a});
  }
}

TEST_F(TransferPathsTest, FileOnTmpfsTrusted) {
  ShmDir shm;
  std::string text = Pattern(100001, 6);
  std::string path = shm.Write("file", text);
  ub::File file = Open(path);
  EXPECT_TRUE(file.served_locally());
  EXPECT_EQ(file.why_not(), PathReason::kFsNotTrusted);
  ub::Lease lease = Get();
  Completion done = Do(ub::ReadOp(1, file, Bytes(1), lease, Bytes(3), Bytes(100000)));
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.path, Path::kStaged);
  EXPECT_EQ(done.reason, PathReason::kFsNotTrusted);
  EXPECT_TRUE(Text(lease, 3, 100000) == text.substr(1));
  EXPECT_EQ(
      ReasonOf(Do(ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), Bytes(1), {.path = PathPolicy::kDirectOnly})).status),
      Reason::kPathUnavailable);
  EXPECT_TRUE(Do(ub::WriteOp(1, lease, Bytes(3), Bytes(1000), file, Bytes(50000))).status.ok());
  EXPECT_EQ(ReadFile(path).substr(50000, 1000), text.substr(1, 1000));
}

TEST_F(TransferPathsTest, NodeThatIsDirectOnlyFallsBackLocally) {
  StartWith("path { policy: DIRECT_ONLY }\n");
  if (IsSkipped()) return;
  ShmDir shm;
  ub::File file = Open(shm.Write("file", "text"));
  ub::Lease lease = Get();
  EXPECT_EQ(ReasonOf(Do(ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), Bytes(4))).status), Reason::kPathUnavailable);
  EXPECT_TRUE(
      Do(ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), Bytes(4), {.path = PathPolicy::kPreferDirect})).status.ok());
}

TEST_F(TransferPathsTest, CopyChangesMoreThanItShould) {
  ub::Lease from = Get(2 * kBlock);
  ub::Lease to = Get(2 * kBlock);
  std::string text = Pattern(2 * kBlock, 7);
  Put(from, text);
  Completion done = Do(ub::CopyOp(1, from, Bytes(101), to, Bytes(kBlock - 50), Bytes(kBlock)));
  EXPECT_TRUE(done.status.ok()) << done.status;
  EXPECT_EQ(done.bytes, Bytes(kBlock));
  EXPECT_EQ(done.from, ub::MemoryKind::kHost);
  EXPECT_EQ(done.to, ub::MemoryKind::kHost);
  EXPECT_TRUE(Text(to, kBlock - 50, kBlock) == text.substr(101, kBlock));
  EXPECT_EQ(to.data()[kBlock - 51], std::byte{0});
  EXPECT_EQ(to.data()[2 * kBlock - 50], std::byte{0});
  EXPECT_EQ(ReasonOf(Do(ub::CopyOp(1, from, Bytes(0), from, Bytes(10), Bytes(11))).status), Reason::kOverlap);
  EXPECT_TRUE(Do(ub::CopyOp(1, from, Bytes(0), from, MiB(1), MiB(1))).status.ok());
  EXPECT_TRUE(Text(from, 1 << 20, 1 << 20) == text.substr(0, 1 << 20));
}

TEST_F(TransferPathsTest, RightsOfLeaseOrFileIgnored) {
  std::string path = disk_.Write("file", Pattern(8192, 8));
  ub::File only_read = Open(path, O_RDONLY);
  ub::File only_written = Open(path, O_WRONLY);
  ub::Lease lease = Get();
  EXPECT_EQ(ReasonOf(Do(ub::WriteOp(1, lease, Bytes(0), KiB(4), only_read, Bytes(0))).status), Reason::kReadOnly);
  EXPECT_EQ(ReasonOf(Do(ub::ReadOp(1, only_written, Bytes(0), lease, Bytes(0), KiB(4))).status), Reason::kReadOnly);
  auto ticket = lease.Share({.access = ub::Access::kReadOnly, .uid = ub::Uid(0)});
  ASSERT_TRUE(ticket.ok());
  std::unique_ptr<ub::Client> other = Connect();
  auto shared = other->Attach(*ticket);
  ASSERT_TRUE(shared.ok()) << shared.status();
  auto queue = ub::Queue::Open(*other, {});
  ASSERT_TRUE(queue.ok());
  auto file = ub::File::Open(*other, path, O_RDWR);
  ASSERT_TRUE(file.ok());
  std::array<Op, 2> ops = {ub::ReadOp(1, *file, Bytes(0), *shared, Bytes(0), KiB(4)),
                           ub::WriteOp(2, *shared, Bytes(0), KiB(4), *file, Bytes(0))};
  ASSERT_TRUE((*queue)->Submit(ops).ok());
  std::array<Completion, 2> done;
  ASSERT_TRUE((*queue)->Wait(absl::MakeSpan(done), 2, kBound).ok());
  for (const Completion& one : done) {
    EXPECT_EQ(ReasonOf(one.status), one.tag == 1 ? Reason::kReadOnly : Reason::kNone) << one.status;
  }
}

TEST_F(TransferPathsTest, RangesBeyondTheLease) {
  ub::File file = Open(disk_.Write("file", Pattern(8192, 9)));
  ub::Lease lease = Get();
  for (auto [offset, length] : std::vector<std::pair<uint64_t, uint64_t>>{
           {kBlock, 1}, {kBlock - 1, 2}, {0, kBlock + 1}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}}) {
    EXPECT_EQ(ReasonOf(Do(ub::ReadOp(1, file, Bytes(0), lease, Bytes(offset), Bytes(length))).status),
              Reason::kOutOfRange)
        << offset << " " << length;
  }
  Op stale = ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), KiB(4));
  stale.entry.generation -= 1;
  EXPECT_EQ(ReasonOf(Do(stale).status), Reason::kStaleGeneration);
  stale.entry.lease += 1000;
  EXPECT_EQ(ReasonOf(Do(stale).status), Reason::kNoSuchLease);
}

TEST_F(TransferPathsTest, DescriptorsThatAreNoFiles) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  ub::UniqueFd read_end(pipe[0]);
  ub::UniqueFd write_end(pipe[1]);
  std::string path = disk_.Write("file", "text");
  ub::UniqueFd handle(::open(path.c_str(), O_PATH | O_CLOEXEC));
  ub::UniqueFd device(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  ub::UniqueFd directory(::open("/", O_RDONLY | O_CLOEXEC));
  for (int fd : {read_end.get(), write_end.get(), handle.get(), device.get(), directory.get()}) {
    auto file = ub::File::FromDescriptor(*client_, fd);
    EXPECT_EQ(ReasonOf(file.status()), Reason::kBadFile) << file.status();
  }
}

}  // namespace
}  // namespace ubd::testing
