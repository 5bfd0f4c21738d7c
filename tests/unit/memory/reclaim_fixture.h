// Pools of one page size, their events recorded, and a check at the end that nothing was left behind.
#ifndef UBD_TESTS_UNIT_MEMORY_RECLAIM_FIXTURE_H_
#define UBD_TESTS_UNIT_MEMORY_RECLAIM_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <vector>

#include "tests/unit/memory/testing.h"

namespace ubd::testing {

inline const Charge kAlice = {Uid(1001)};

class Reclaim : public ::testing::TestWithParam<Bytes> {
 protected:
  void SetUp() override { SKIP_WITHOUT_PAGES(GetParam()); }
  void TearDown() override {
    if (memory_ == nullptr) return;
    memory_->Stop();
    memory_.reset();
    EXPECT_EQ(OpenFds(), fds_);
    EXPECT_EQ(MemfdMaps(), 0U);
  }
  void Boot(uint32_t blocks, uint32_t reserve, HostMemoryDeps deps = RealDeps()) {
    HostPoolConfig pool = SmallPool("p", GetParam(), blocks, reserve);
    pool.lock_pages = Demand::kOff;
    BootWith({pool}, std::move(deps));
  }
  void BootWith(const std::vector<HostPoolConfig>& pools, HostMemoryDeps deps = RealDeps()) {
    fds_ = OpenFds();
    absl::StatusOr<std::unique_ptr<Memory>> made = CreateHostMemory(pools, nullptr, deps);
    ASSERT_TRUE(made.ok()) << made.status();
    memory_ = std::move(*made);
    memory_->Start(&sink_);
  }
  ub::UniqueFd Open(uint32_t block, Access access = Access::kReadWrite) {
    absl::StatusOr<ub::UniqueFd> fd = memory_->OpenForHolder(BlockId(block), access);
    EXPECT_TRUE(fd.ok()) << fd.status();
    return fd.ok() ? std::move(*fd) : ub::UniqueFd();
  }
  void Order(uint32_t block, bool must_be_fresh = false, absl::Duration grace = absl::ZeroDuration()) {
    memory_->Reclaim(BlockId(block), {must_be_fresh, grace, kAlice});
  }
  void Write(uint32_t block, char value) {
    ub::UniqueFd fd = Open(block);
    Mapping mapping(fd.get(), kBlock, PROT_READ | PROT_WRITE);
    ASSERT_TRUE(mapping.ok());
    mapping.data()[0] = value;
  }
  char FirstByte(uint32_t block) {
    ub::UniqueFd fd = Open(block, Access::kReadOnly);
    Mapping mapping(fd.get(), kBlock, PROT_READ);
    return mapping.ok() ? mapping.data()[0] : '?';
  }
  uint64_t Reserve() { return memory_->Facts()[0].reserve; }

  size_t fds_ = 0;
  RecordingSink sink_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_MEMORY_RECLAIM_FIXTURE_H_
