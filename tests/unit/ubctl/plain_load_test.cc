#include "client/ubctl/load/plain_load.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/ubctl/load/cold_cache.h"
#include "client/ubctl/load/positions.h"
#include "client/ubctl/load/workbench.h"
#include "client/ubctl/verify/pattern.h"

namespace ub::ctl {
namespace {

constexpr Bytes kFile = MiB(4);

UniqueFd Scratch() {
  auto fd = MakeScratchFile("/tmp", kFile);
  EXPECT_TRUE(fd.ok()) << fd.status();
  return fd.ok() ? *std::move(fd) : UniqueFd();
}

TEST(Positions, GoRoundInOrderOrAtRandomByTheSeed) {
  Positions ordered(10, 3, /*random=*/false, 0);
  std::vector<uint64_t> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(ordered.Next());
  EXPECT_EQ(seen, (std::vector<uint64_t>{0, 10, 20, 0}));
  Positions first(4096, 1000, /*random=*/true, 5);
  Positions again(4096, 1000, /*random=*/true, 5);
  bool differ = false;
  for (uint64_t i = 0; i < 50; ++i) {
    uint64_t at = first.Next();
    EXPECT_EQ(at, again.Next());
    EXPECT_EQ(at % 4096, 0U);
    EXPECT_LT(at, 4096U * 1000);
    differ = differ || at != i * 4096;
  }
  EXPECT_TRUE(differ);
}

TEST(Chunk, IsWhatASmallFileHasInWholeSectors) {
  EXPECT_EQ(ChunkFor(MiB(8).count(), MiB(1)), MiB(1));
  EXPECT_EQ(ChunkFor(10000, MiB(1)), KiB(8));
  EXPECT_EQ(ChunkFor(4095, MiB(1)), Bytes(0));
}

TEST(Traditional, BytesArriveWhereTheyAreWanted) {
  UniqueFd fd = Scratch();
  std::vector<std::byte> wanted(kFile.count());
  CpuMeter meter(-1);
  auto result = RunTraditional(fd.get(), absl::MakeSpan(wanted), {.chunk = MiB(1), .bytes = kFile}, meter);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->bytes, kFile.count());
  EXPECT_EQ(result->latency.count(), 4U);
  EXPECT_GT(result->bytes_per_s(), 0);
  std::vector<std::byte> really(kFile.count());
  ASSERT_EQ(pread(fd.get(), really.data(), really.size(), 0), static_cast<ssize_t>(really.size()));
  EXPECT_EQ(FirstDifference(wanted, really), std::nullopt);
}

TEST(Traditional, FileSmallerThanAChunkIsRefused) {
  UniqueFd fd = Scratch();
  std::vector<std::byte> wanted(MiB(8).count());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RunTraditional(fd.get(), absl::MakeSpan(wanted), {.chunk = MiB(8), .bytes = kFile}, CpuMeter(-1)).status()));
}

TEST(PlainUring, ReadsEverythingWithManyInFlight) {
  UniqueFd fd = Scratch();
  auto result = RunPlainUring(fd.get(), {.chunk = KiB(64), .depth = 8, .bytes = kFile}, CpuMeter(-1));
  if (!result.ok()) GTEST_SKIP() << result.status();  // no O_DIRECT or no io_uring here
  EXPECT_EQ(result->bytes, kFile.count());
  EXPECT_EQ(result->transfers, 64U);
  EXPECT_EQ(result->latency.count(), 64U);
}

TEST(PlainUring, EndsWhenTheTimeIsOver) {
  UniqueFd fd = Scratch();
  LoadPlan plan = {.chunk = KiB(4), .depth = 4, .random = true, .at_most = absl::Milliseconds(20)};
  auto result = RunPlainUring(fd.get(), plan, CpuMeter(-1));
  if (!result.ok()) GTEST_SKIP() << result.status();
  EXPECT_GT(result->transfers, 0U);
}

TEST(ColdCache, DroppedPagesAreGoneAndReadOnesAreBack) {
  UniqueFd fd = Scratch();
  std::string left = DropCache(fd.get(), kFile.count());
  if (!left.empty()) GTEST_SKIP() << left;  // a file system in memory
  EXPECT_LE(*CachedShare(fd.get(), kFile.count()), 0.01);
  std::vector<std::byte> buffer(kFile.count());
  ASSERT_EQ(pread(fd.get(), buffer.data(), buffer.size(), 0), static_cast<ssize_t>(buffer.size()));
  EXPECT_GT(*CachedShare(fd.get(), kFile.count()), 0.99);
}

TEST(ColdCache, WhatLivesInMemoryIsSaidToStay) {
  UniqueFd fd(memfd_create("cold", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 65536), 0);
  std::vector<std::byte> bytes(65536, std::byte{1});
  ASSERT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_NE(DropCache(fd.get(), bytes.size()).find("100% of the file stayed"), std::string::npos);
}

}  // namespace
}  // namespace ub::ctl
