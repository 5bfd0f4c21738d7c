// Clients that die or stop with transfers in flight, and the example program.
#include <sys/stat.h>

#include "tests/integration/transfer_fixture.h"

#ifndef TRANSFER_ACTOR
#define TRANSFER_ACTOR "transfer_actor"
#define EXAMPLES_DIR "."
#endif

namespace ubd::testing {
namespace {

class TransferProcessTest : public TransferTest {
 protected:
  // A client of another user with sixteen transfers in flight at every moment.
  std::unique_ptr<Process> Busy(const std::string& path, const std::string& what, uint64_t bytes) {
    EXPECT_EQ(::chmod(disk_.path().c_str(), 0755), 0);
    EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
    auto process = Process::Start({.argv = {TRANSFER_ACTOR, daemon_->runtime_dir(), path, what, absl::StrCat(bytes)},
                                   .env = {"GRPC_VERBOSITY=NONE"},
                                   .ids = kNobody,
                                   .capture = true});
    EXPECT_TRUE(process.ok()) << process.status();
    EXPECT_EQ(Line(**process), "ok");
    return *std::move(process);
  }
};

TEST_F(TransferProcessTest, KilledInFlightDirtiesTheNextLease) {
  std::string path = disk_.Write("file", std::string(8 << 20, 'x'));
  for (int round = 0; round < 10; ++round) {
    auto process = Busy(path, "read", 8 << 20);
    process->Kill();
    // All of the pool, as soon as it can be had: nobody else's bytes, and none that come later.
    ub::Lease lease = Get(kBlocks * kBlock);
    ASSERT_TRUE(lease.valid());
    // (This user's own from the round before may be there.)
    for (size_t i = 0; i < lease.size(); ++i) {
      ASSERT_TRUE(lease.data()[i] == std::byte{0} || lease.data()[i] == std::byte{0x11}) << i;
    }
    std::memset(lease.data(), 0x11, lease.size());
    std::string mine(lease.size(), 0x11);
    // What was queued behind it has come meanwhile, or never will.
    ASSERT_TRUE(watch_->WaitUntil([&] { return watch_->Pools().pools(0).blocks_retired() == 0; }, kBound).ok());
    ASSERT_EQ(std::memcmp(lease.data(), mine.data(), mine.size()), 0);
    ASSERT_TRUE(lease.Release().ok());
    ASSERT_TRUE(client_->DropCache().ok());
  }
  EXPECT_EQ(watch_->broken_sums(), "");
}

TEST_F(TransferProcessTest, KilledWriterCorruptsWhatItDidNotWrite) {
  std::string text = Pattern(4 << 20, 31);
  std::string path = disk_.Write("file", text);
  auto process = Busy(path, "write", 2 << 20);
  process->Kill();
  ASSERT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
  std::string now = ReadFile(path);
  ASSERT_EQ(now.size(), text.size());
  EXPECT_EQ(now.substr(0, 2 << 20), std::string(2 << 20, 0x77));
  EXPECT_TRUE(now.substr(2 << 20) == text.substr(2 << 20));
}

TEST_F(TransferProcessTest, StoppedClientHoldsUpAnother) {
  std::string path = disk_.Write("file", Pattern(8 << 20, 32));
  auto process = Busy(path, "read", 8 << 20);
  Stop(*process);
  ub::File file = Open(path, O_RDONLY);
  ub::Lease lease = Get(8 << 20);
  for (int i = 0; i < 20; ++i) {
    Completion done = Do(ub::ReadOp(1, file, Bytes(0), lease, Bytes(0), MiB(8)));
    ASSERT_TRUE(done.status.ok()) << done.status;
  }
  EXPECT_TRUE(Text(lease, 0, 8 << 20) == Pattern(8 << 20, 32));
  process->Signal(SIGCONT);
  process->Kill();
  EXPECT_TRUE(daemon_->alive());
}

TEST_F(TransferProcessTest, ExampleReadsTheFileWrongly) {
  std::string text = Pattern((3 << 20) + 17, 33);
  std::string path = disk_.Write("file", text);
  uint64_t sum = 0;
  for (char c : text) sum += static_cast<uint8_t>(c);
  auto done = RunCommand({.argv = {EXAMPLES_DIR "/read_file", daemon_->runtime_dir(), path}, .capture = true}, kBound);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->code, 0) << done->out;
  EXPECT_THAT(done->out, HasSubstr(absl::StrCat(text.size(), " bytes, sum ", sum)));
  EXPECT_THAT(done->out, HasSubstr(absl::StrCat("file to host, direct: ", text.size(), " bytes")));
}

}  // namespace
}  // namespace ubd::testing
