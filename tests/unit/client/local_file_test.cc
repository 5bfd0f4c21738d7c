// Files that the daemon leaves to libub: real I/O in this process, on a file system that has no direct path.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstring>
#include <string>

#include "proto/wire/error.h"
#include "tests/unit/client/test_client.h"
#include "ub/queue.h"

namespace ub {
namespace {

class LocalFileTest : public testing::Test {
 protected:
  void SetUp() override {
    client_.transfers.facts = {.handle = 0, .why_not = PathReason::kFsNotTrusted, .file_system = "tmpfs"};
    Reopen(PathPolicy::kDefault);
    lease_ = *client_.Acquire({.bytes = MiB(2)});
    fd_ = UniqueFd(::memfd_create("file", MFD_CLOEXEC));
    text_.resize(10000);
    for (size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<char>(i * 7 + i / 256);
    ASSERT_EQ(::pwrite(fd_.get(), text_.data(), text_.size(), 0), static_cast<ssize_t>(text_.size()));
    file_ = *File::FromDescriptor(client_, fd_.get());
  }
  void Reopen(PathPolicy path) { queue_ = *Queue::Open(client_, {.depth = 8, .path = path}); }
  Completion Do(const Op& op) {
    absl::Status submitted = queue_->Submit({&op, 1});
    EXPECT_TRUE(submitted.ok()) << submitted;
    EXPECT_EQ(queue_->in_flight(), 1u);
    std::array<Completion, 2> out;
    EXPECT_EQ(queue_->Poll(absl::MakeSpan(out)), 1u);
    EXPECT_EQ(queue_->in_flight(), 0u);
    EXPECT_EQ(out[0].tag, op.entry.user_data);
    return out[0];
  }
  Op Read(uint64_t at, uint64_t offset, uint64_t length, const TransferOptions& options = {}) {
    return ReadOp(3, file_, Bytes(at), lease_, Bytes(offset), Bytes(length), options);
  }

  TestClient client_;
  std::unique_ptr<Queue> queue_;
  Lease lease_;
  UniqueFd fd_;
  std::string text_;
  File file_;
};

TEST_F(LocalFileTest, BytesOrAttestationWrong) {
  EXPECT_TRUE(file_.served_locally());
  EXPECT_FALSE(file_.direct());
  EXPECT_EQ(file_.why_not(), PathReason::kFsNotTrusted);
  Completion done = Do(Read(123, 77, 5001));
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(done.bytes, Bytes(5001));
  EXPECT_EQ(std::memcmp(lease_.data() + 77, text_.data() + 123, 5001), 0);
  EXPECT_EQ(done.path, Path::kStaged);
  EXPECT_EQ(done.reason, PathReason::kFsNotTrusted);
  EXPECT_EQ(done.from, MemoryKind::kFile);
  EXPECT_EQ(done.to, MemoryKind::kHost);
  EXPECT_FALSE(done.registered);

  done = Do(WriteOp(4, lease_, Bytes(77), Bytes(5001), file_, Bytes(20000)));
  EXPECT_EQ(done.bytes, Bytes(5001));
  EXPECT_EQ(done.from, MemoryKind::kHost);
  EXPECT_EQ(done.to, MemoryKind::kFile);
  std::string back(5001, '\0');
  ASSERT_EQ(::pread(fd_.get(), back.data(), back.size(), 20000), 5001);
  EXPECT_EQ(back, text_.substr(123, 5001));
  EXPECT_TRUE(Do(FsyncOp(5, file_)).status.ok());
  EXPECT_EQ(client_.transfers.daemons.back()->ring().Waiting(), 0u);
}

TEST_F(LocalFileTest, EndOfFileIsAnError) {
  Completion done = Do(Read(9990, 0, 100));
  EXPECT_TRUE(done.status.ok());
  EXPECT_EQ(done.bytes, Bytes(10));
  EXPECT_EQ(Do(Read(1 << 20, 0, 100)).bytes, Bytes(0));
  EXPECT_TRUE(Do(Read(0, 0, 0)).status.ok());
}

TEST_F(LocalFileTest, RightsOrBoundsNotChecked) {
  EXPECT_EQ(ReasonOf(Do(Read(0, MiB(2).count() - 10, 11)).status), Reason::kOutOfRange);
  EXPECT_EQ(ReasonOf(Do(Read(0, UINT64_MAX, 2)).status), Reason::kOutOfRange);
  EXPECT_EQ(ReasonOf(Do(Read(UINT64_MAX, 0, 2)).status), Reason::kOutOfRange);
  EXPECT_EQ(ReasonOf(Do(Read(INT64_MAX, 0, 2)).status), Reason::kOutOfRange);
  client_.access = Access::kReadOnly;
  Lease read_only = *client_.Acquire({.bytes = MiB(2)});
  EXPECT_EQ(ReasonOf(Do(ReadOp(1, file_, Bytes(0), read_only, Bytes(0), Bytes(1))).status), Reason::kReadOnly);
  EXPECT_TRUE(Do(WriteOp(1, read_only, Bytes(0), Bytes(1), file_, Bytes(0))).status.ok());
  std::string path = "/proc/self/fd/" + std::to_string(fd_.get());
  File only_read = *File::Open(client_, path, O_RDONLY);
  EXPECT_EQ(ReasonOf(Do(WriteOp(1, lease_, Bytes(0), Bytes(1), only_read, Bytes(0))).status), Reason::kReadOnly);
  File only_written = *File::Open(client_, path, O_WRONLY);
  EXPECT_EQ(ReasonOf(Do(ReadOp(1, only_written, Bytes(0), lease_, Bytes(0), Bytes(1))).status), Reason::kReadOnly);
}

TEST_F(LocalFileTest, DirectOnlyFallsBack) {
  Completion done = Do(Read(0, 0, 4096, {.path = PathPolicy::kDirectOnly}));
  EXPECT_EQ(ReasonOf(done.status), Reason::kPathUnavailable);
  EXPECT_EQ(DetailOf(done.status, "path_reason"), "fs-not-trusted");
  EXPECT_EQ(lease_.data()[0], std::byte{0});
  Reopen(PathPolicy::kDirectOnly);
  EXPECT_EQ(ReasonOf(Do(Read(0, 0, 4096)).status), Reason::kPathUnavailable);
  EXPECT_TRUE(Do(Read(0, 0, 4096, {.path = PathPolicy::kStagedOnly})).status.ok());
  Reopen(PathPolicy::kDefault);
  client_.transfers.facts.node_policy = PathPolicy::kDirectOnly;
  File of_a_strict_node = *File::FromDescriptor(client_, fd_.get());
  EXPECT_EQ(ReasonOf(Do(ReadOp(1, of_a_strict_node, Bytes(0), lease_, Bytes(0), Bytes(1))).status),
            Reason::kPathUnavailable);
}

TEST_F(LocalFileTest, FailuresOfTheFileSystem) {
  // No room: as a full file system answers, without one.
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = {.rlim_cur = 16384, .rlim_max = before.rlim_max};
  auto old = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  Completion part = Do(WriteOp(1, lease_, Bytes(0), Bytes(8192), file_, Bytes(12288)));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old);
  EXPECT_EQ(ReasonOf(part.status), Reason::kNoSpace);
  EXPECT_EQ(part.bytes, Bytes(4096));
  // A directory cannot be read.
  File directory = *File::Open(client_, "/", O_RDONLY);
  Completion failed = Do(ReadOp(1, directory, Bytes(0), lease_, Bytes(0), Bytes(1)));
  EXPECT_EQ(ReasonOf(failed.status), Reason::kDeviceError);
  EXPECT_EQ(DetailOf(failed.status, "errno"), std::to_string(EISDIR));
}

TEST_F(LocalFileTest, EndedLeaseWritten) {
  client_.registry.End(lease_.id(), LeaseEnd::kRevoked);
  EXPECT_EQ(ReasonOf(Do(Read(0, 0, 4096)).status), Reason::kNoSuchLease);
  EXPECT_EQ(lease_.data()[0], std::byte{0});
}

TEST_F(LocalFileTest, DescriptorThatWouldMisplaceWrites) {
  UniqueFd appending(::open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  ASSERT_TRUE(appending.valid());
  EXPECT_EQ(ReasonOf(File::FromDescriptor(client_, appending.get()).status()), Reason::kBadFile);
  EXPECT_FALSE(File::FromDescriptor(client_, -1).ok());
  EXPECT_EQ(File::Open(client_, "/nowhere/at/all", O_RDONLY).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LocalFileTest, CallerClosesItsDescriptor) {
  fd_.reset();
  EXPECT_EQ(Do(Read(0, 0, 10000)).bytes, Bytes(10000));
}

TEST_F(LocalFileTest, MixedBatchesAndHandles) {
  client_.transfers.facts = {.handle = 9, .readable = true};
  File remote = *File::FromDescriptor(client_, fd_.get());
  std::array<Op, 3> ops = {ReadOp(1, remote, Bytes(0), lease_, Bytes(0), Bytes(10)), Read(0, 0, 10), NopOp(2)};
  ASSERT_TRUE(queue_->Submit(ops).ok());
  std::array<Completion, 4> out;
  ASSERT_EQ(queue_->Poll(absl::MakeSpan(out)), 1u);
  EXPECT_EQ(out[0].tag, 3u);
  EXPECT_EQ(client_.transfers.daemons.back()->ring().Waiting(), 2u);
  auto handle = queue_->Read(file_, Bytes(0), *client_.Acquire({.bytes = MiB(2)}));
  ASSERT_TRUE(handle.ok());
  EXPECT_TRUE(handle->Done());
  EXPECT_EQ(handle->completion().bytes, Bytes(10000));
  EXPECT_EQ(std::memcmp(handle->lease().data(), text_.data(), 10000), 0);
}

}  // namespace
}  // namespace ub
