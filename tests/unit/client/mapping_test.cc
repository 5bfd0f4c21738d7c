#include "client/src/mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "proto/wire/error.h"
#include "tests/unit/client/test_memory.h"

namespace ub {
namespace {

constexpr Bytes kBlock = MiB(2);
constexpr Bytes kPage = KiB(4);

absl::StatusOr<Mapping> MapBlocks(uint32_t blocks, Access access, std::vector<UniqueFd>* fds = nullptr) {
  absl::StatusOr<Mapping> mapping = Mapping::Reserve(kBlock, blocks, kPage, access);
  for (uint32_t i = 0; mapping.ok() && i < blocks; ++i) {
    UniqueFd fd = MakeMemfd(kBlock.count());
    if (absl::Status bad = mapping->MapBlock(i, fd.get()); !bad.ok()) return bad;
    if (fds != nullptr) fds->push_back(std::move(fd));
  }
  if (mapping.ok()) {
    if (absl::Status bad = mapping->Populate(); !bad.ok()) return bad;
  }
  return mapping;
}

TEST(MappingTest, BlocksOutOfOrderOrApart) {
  std::vector<UniqueFd> fds;
  absl::StatusOr<Mapping> mapping = MapBlocks(3, Access::kReadWrite, &fds);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  ASSERT_EQ(mapping->size(), 3 * kBlock.count());
  for (size_t i = 0; i < 3; ++i) mapping->data()[i * kBlock.count()] = static_cast<std::byte>(i + 1);
  for (size_t i = 0; i < 3; ++i) {
    char first = 0;
    ASSERT_EQ(::pread(fds[i].get(), &first, 1, 0), 1);
    EXPECT_EQ(first, static_cast<char>(i + 1));
  }
}

TEST(MappingTest, WritingFaultsLater) {
  absl::StatusOr<Mapping> mapping = MapBlocks(2, Access::kReadWrite);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  long before = PageFaults();
  for (size_t at = 0; at < mapping->size(); at += 4096) mapping->data()[at] = std::byte{1};
  if (!kShadowMemory) {
    EXPECT_EQ(PageFaults() - before, 0);
  }
}

TEST(MappingTest, UnsealedFdAccepted) {
  absl::StatusOr<Mapping> mapping = Mapping::Reserve(kBlock, 1, kPage, Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  UniqueFd unsealed = MakeMemfd(kBlock.count(), 0);
  EXPECT_EQ(mapping->MapBlock(0, unsealed.get()).code(), absl::StatusCode::kFailedPrecondition);
  UniqueFd grow_only = MakeMemfd(kBlock.count(), F_SEAL_GROW);
  EXPECT_EQ(mapping->MapBlock(0, grow_only.get()).code(), absl::StatusCode::kFailedPrecondition);
  UniqueFd no_memfd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(mapping->MapBlock(0, no_memfd.get()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MappingTest, FdOfWrongSizeAccepted) {
  absl::StatusOr<Mapping> mapping = Mapping::Reserve(kBlock, 1, kPage, Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  for (uint64_t size : {kBlock.count() / 2, kBlock.count() * 2}) {
    UniqueFd fd = MakeMemfd(size);
    absl::Status status = mapping->MapBlock(0, fd.get());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << size;
    EXPECT_EQ(DetailOf(status, "wanted"), std::to_string(kBlock.count()));
  }
}

TEST(MappingTest, SizesThatOverflowOrCannotBe) {
  for (auto [block, blocks, page] :
       std::vector<std::tuple<uint64_t, uint64_t, uint64_t>>{{0, 1, 4096},
                                                             {2 << 20, 0, 4096},
                                                             {2 << 20, 1, 0},
                                                             {2 << 20, 1, 4097},
                                                             {4097, 1, 4096},
                                                             {2 << 20, 1, uint64_t{1} << 63},
                                                             {uint64_t{1} << 63, 2, 4096},
                                                             {uint64_t{1} << 30, uint64_t{1} << 34, 4096},
                                                             {UINT64_MAX - 4095, UINT64_MAX, 4096}}) {
    absl::StatusOr<Mapping> mapping = Mapping::Reserve(Bytes(block), blocks, Bytes(page), Access::kReadWrite);
    EXPECT_EQ(mapping.status().code(), absl::StatusCode::kInvalidArgument) << block << " " << blocks << " " << page;
  }
}

TEST(MappingTest, BlockBeyondTheEndMapped) {
  absl::StatusOr<Mapping> mapping = Mapping::Reserve(kBlock, 2, kPage, Access::kReadWrite);
  ASSERT_TRUE(mapping.ok());
  UniqueFd fd = MakeMemfd(kBlock.count());
  EXPECT_EQ(mapping->MapBlock(2, fd.get()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(mapping->MapBlock(UINT32_MAX, fd.get()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(MappingTest, MisalignedForLargePages) {
  absl::StatusOr<Mapping> mapping = Mapping::Reserve(GiB(1), 1, GiB(1), Access::kReadWrite);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->data()) % GiB(1).count(), 0u);
}

TEST(MappingTest, ReadOnlyLeaseWritable) {
  absl::StatusOr<Mapping> mapping = MapBlocks(1, Access::kReadOnly);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  EXPECT_EQ(mapping->data()[0], std::byte{0});
  // Asked of the kernel, which fails a write into the lease where the CPU would raise SIGSEGV.
  UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::read(zero.get(), mapping->data(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
}

// Whether this process has memory of a memfd at that address. (A sanitizer may put memory of its own into a hole.)
bool SharedMemoryAt(const std::byte* at) {
  std::ifstream maps("/proc/self/maps");
  auto wanted = reinterpret_cast<uintptr_t>(at);
  for (std::string line; std::getline(maps, line);) {
    char* rest = nullptr;
    uintptr_t begin = std::strtoull(line.c_str(), &rest, 16);
    uintptr_t end = std::strtoull(rest + 1, nullptr, 16);
    if (begin <= wanted && wanted < end) return line.find("memfd:") != std::string::npos;
  }
  return false;
}

TEST(MappingTest, InheritedByAForkedChild) {
  absl::StatusOr<Mapping> mapping = MapBlocks(1, Access::kReadWrite);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  std::byte* at = mapping->data();
  EXPECT_TRUE(SharedMemoryAt(at));
  int status = InChild([at] { return SharedMemoryAt(at) ? 1 : 0; });
  EXPECT_EQ(status, 0);
}

TEST(MappingTest, LeftMappedWhenDestroyedOrMovedFrom) {
  std::byte* at = nullptr;
  {
    absl::StatusOr<Mapping> mapping = MapBlocks(1, Access::kReadWrite);
    ASSERT_TRUE(mapping.ok());
    Mapping moved = *std::move(mapping);
    at = moved.data();
    ASSERT_EQ(::msync(at, 4096, MS_ASYNC), 0);
  }
  EXPECT_EQ(::msync(at, 4096, MS_ASYNC), -1);
  EXPECT_EQ(errno, ENOMEM);
}

}  // namespace
}  // namespace ub
