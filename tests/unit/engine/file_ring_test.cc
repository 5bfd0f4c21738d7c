// Transfers by the real kernel to and from a real disk.
#include "daemon/engine/file_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "proto/wire/error.h"
#include "tests/unit/engine/file_testing.h"
#include "tests/unit/engine/ring_testing.h"

namespace ubd::testing {
namespace {

class DiskRing : public ::testing::Test {
 protected:
  static constexpr uint32_t kDepth = 16;
  static constexpr size_t kFile = 4 << 20;

  void SetUp() override {
    SKIP_WITHOUT_DIRECT(folder_);
    auto made = FileRing::Create({.depth = kDepth, .slots = 4});
    ASSERT_TRUE(made.ok()) << made.status();
    ring_ = *std::move(made);
    path_ = folder_.Write("data", Pattern(kFile));
    direct_ = OpenFile(path_, O_RDWR | O_DIRECT);
    ASSERT_TRUE(direct_.valid());
    ASSERT_TRUE(ring_->Register(0, memory_.data(), Bytes(memory_.size())).ok());
    ASSERT_TRUE(ring_->Registered(0));
  }
  FilePiece Piece(FilePiece::Kind kind, uint64_t offset, uint32_t length, uint32_t slot = 0) {
    return {kind, direct_.get(), memory_.data() + offset, length, offset, slot, offset + 1};
  }
  int32_t One(const FilePiece& piece) {
    ring_->Post(piece);
    std::vector<FileResult> results = Finish(*ring_, 1);
    return results.size() == 1 && results[0].tag == piece.tag ? results[0].result : INT32_MIN;
  }
  Folder folder_;
  Memory4K memory_{kFile};
  std::string path_;
  ub::UniqueFd direct_;
  std::unique_ptr<FileRing> ring_;
};

// Slot 0 is registered, slot 1 is not.
class DiskRingBothWays : public DiskRing, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(DiskRingBothWays, ReadsAtDepth) {
  constexpr uint32_t kPiece = 64 << 10;
  for (uint64_t offset = 0; offset < kFile;) {
    while (ring_->Room() > 0 && offset < kFile) {
      EXPECT_EQ(ring_->Post(Piece(FilePiece::Kind::kRead, offset, kPiece, GetParam())), GetParam() == 0);
      offset += kPiece;
    }
    for (const FileResult& result : Finish(*ring_, 1)) {
      EXPECT_EQ(result.result, static_cast<int32_t>(kPiece));
    }
  }
  for (const FileResult& result : Finish(*ring_, ring_->in_flight())) EXPECT_EQ(result.result, int{kPiece});
  EXPECT_EQ(ring_->in_flight(), 0U);
  EXPECT_EQ(ring_->Room(), kDepth);
  EXPECT_TRUE(std::memcmp(memory_.data(), Pattern(kFile).data(), kFile) == 0);
}

TEST_P(DiskRingBothWays, WritesAndSyncs) {
  constexpr uint32_t kPiece = kFile / kDepth;
  std::string fresh = Pattern(kFile, 77);
  std::memcpy(memory_.data(), fresh.data(), kFile);
  for (uint64_t offset = 0; offset < kFile; offset += kPiece) {
    EXPECT_EQ(ring_->Post(Piece(FilePiece::Kind::kWrite, offset, kPiece, GetParam())), GetParam() == 0);
  }
  EXPECT_EQ(ring_->Room(), 0U);
  for (const FileResult& result : Finish(*ring_, kDepth)) EXPECT_EQ(result.result, static_cast<int32_t>(kPiece));
  EXPECT_EQ(One({.kind = FilePiece::Kind::kFsync, .fd = direct_.get(), .tag = 5}), 0);
  std::string found(kFile, '\0');
  ub::UniqueFd reader = OpenFile(path_, O_RDONLY);
  ASSERT_EQ(::pread(reader.get(), found.data(), kFile, 0), static_cast<ssize_t>(kFile));
  EXPECT_TRUE(found == fresh);
}

TEST_P(DiskRingBothWays, UnalignedIsRefusedByTheKernel) {
  FilePiece piece = Piece(FilePiece::Kind::kRead, 0, 4096, GetParam());
  piece.offset = 100;
  EXPECT_EQ(One(piece), -EINVAL);
  piece.offset = 0;
  piece.length = 100;
  EXPECT_EQ(One(piece), -EINVAL);
}

TEST_P(DiskRingBothWays, TheEndOfTheFileIsShort) {
  ASSERT_EQ(::truncate(path_.c_str(), 5000), 0);
  EXPECT_EQ(One(Piece(FilePiece::Kind::kRead, 4096, 8192, GetParam())), 904);
  EXPECT_EQ(One(Piece(FilePiece::Kind::kRead, 8192, 4096, GetParam())), 0);
}

TEST_P(DiskRingBothWays, StagedReadsGoThroughThePageCacheAtAnyOffset) {
  ub::UniqueFd staged = OpenFile(path_, O_RDONLY);
  FilePiece piece = Piece(FilePiece::Kind::kRead, 0, 1000, GetParam());
  piece.fd = staged.get();
  piece.offset = 777;
  EXPECT_EQ(One(piece), 1000);
  EXPECT_TRUE(std::memcmp(memory_.data(), Pattern(kFile).data() + 777, 1000) == 0);
}

INSTANTIATE_TEST_SUITE_P(Slots, DiskRingBothWays, ::testing::Values(0U, 1U),
                         [](const auto& slot) { return slot.param == 0 ? "fixed" : "unfixed"; });

TEST_F(DiskRing, MemoryBesideTheBlockIsNotFixed) {
  Memory4K other(8192);
  FilePiece piece = Piece(FilePiece::Kind::kRead, 0, 4096);
  piece.address = other.data();
  EXPECT_FALSE(ring_->Post(piece));
  piece.address = memory_.data() + kFile - 4096;
  piece.tag = 2;
  EXPECT_TRUE(ring_->Post(piece));
  piece.address = memory_.data() + kFile - 2048;
  piece.tag = 3;
  EXPECT_FALSE(ring_->Post(piece));
  piece.address = memory_.data();
  piece.slot = 99;
  piece.tag = 4;
  EXPECT_FALSE(ring_->Post(piece));
  EXPECT_EQ(Finish(*ring_, 4).size(), 4U);
}

TEST_F(DiskRing, AnErrorOfOnePieceIsNoneOfTheOthers) {
  for (uint64_t i = 0; i < kDepth; ++i) {
    FilePiece piece = Piece(FilePiece::Kind::kRead, i * 4096, 4096);
    if (i % 3 == 1) piece.fd = -1;
    ring_->Post(piece);
  }
  for (const FileResult& result : Finish(*ring_, kDepth)) {
    EXPECT_EQ(result.result, (result.tag - 1) / 4096 % 3 == 1 ? -EBADF : 4096) << result.tag;
  }
}

TEST_F(DiskRing, ReapsInPortions) {
  for (uint64_t i = 0; i < kDepth; ++i) ring_->Post(Piece(FilePiece::Kind::kRead, i * 4096, 4096));
  ring_->Submit();
  std::vector<bool> seen(kDepth);
  std::array<FileResult, 3> portion;
  for (uint32_t left = kDepth; left > 0;) {
    WaitReadable(ring_->fd());
    size_t got = ring_->Reap(absl::MakeSpan(portion));
    ASSERT_LE(got, portion.size());
    for (size_t i = 0; i < got; ++i) {
      EXPECT_FALSE(seen[portion[i].tag / 4096]);
      seen[portion[i].tag / 4096] = true;
    }
    left -= static_cast<uint32_t>(got);
    EXPECT_EQ(ring_->in_flight(), left);
  }
}

// As a lane does that spins: it makes no system call of its own between Submit and the last result.
TEST_F(DiskRing, CompletionsReachAThreadThatOnlySpins) {
  for (int round = 0; round < 50; ++round) {
    for (uint64_t i = 0; i < kDepth; ++i) ring_->Post(Piece(FilePiece::Kind::kRead, i * 4096, 4096));
    ring_->Submit();
    std::array<FileResult, kDepth> out;
    for (size_t got = 0; got < kDepth;) got += ring_->Reap(absl::MakeSpan(out));
  }
  EXPECT_EQ(ring_->in_flight(), 0U);
}

// A lane sleeps in epoll among other descriptors, and the ring was made by another thread.
TEST_F(DiskRing, EpollWakesALaneOnAnotherThread) {
  std::thread lane([&] {
    ub::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event wanted = {.events = EPOLLIN, .data = {}};
    ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, ring_->fd(), &wanted), 0);
    for (int round = 0; round < 200; ++round) {
      ring_->Post(Piece(FilePiece::Kind::kRead, 4096, 4096));
      ring_->Submit();
      FileResult result;
      while (ring_->Reap({&result, 1}) == 0) {
        epoll_event event;
        const int ready = ::epoll_wait(epoll.get(), &event, 1, 10000);
        ASSERT_TRUE(ready == 1 || (ready < 0 && errno == EINTR)) << "round " << round << ": no wake-up came";
      }
      ASSERT_EQ(result.result, 4096);
    }
  });
  lane.join();
}

TEST_F(DiskRing, BlocksComeAndGoDuringTraffic) {
  std::atomic<bool> stop = false;
  std::atomic<int> changes = 0;
  std::thread other([&] {
    Memory4K block(1 << 20);
    while (!stop) {
      for (uint32_t slot : {1U, 2U, 3U}) {
        EXPECT_TRUE(ring_->Register(slot, block.data(), Bytes(block.size())).ok());
        EXPECT_TRUE(ring_->Registered(slot));
        ring_->Unregister(slot);
        EXPECT_FALSE(ring_->Registered(slot));
        ++changes;
      }
    }
  });
  uint64_t read = 0;
  for (uint64_t offset = 0; read < 4000 || changes < 200; offset = (offset + 4096) % kFile) {
    if (ring_->Room() == 0) {
      for (const FileResult& result : Finish(*ring_, 1)) EXPECT_EQ(result.result, 4096);
    }
    EXPECT_TRUE(ring_->Post(Piece(FilePiece::Kind::kRead, offset, 4096)));
    ++read;
  }
  for (const FileResult& result : Finish(*ring_, ring_->in_flight())) EXPECT_EQ(result.result, 4096);
  stop = true;
  other.join();
  EXPECT_EQ(ring_->RegistrationText(), "1 of 1 backings");
}

}  // namespace
}  // namespace ubd::testing
