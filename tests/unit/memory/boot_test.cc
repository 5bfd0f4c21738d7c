// Making the pools: what they get, and that a failure leaves nothing behind and kills nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/memory/huge_pages.h"
#include "proto/wire/error.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

using ::testing::HasSubstr;

const char kHugeDir[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/";

class Boot : public ::testing::Test {
 protected:
  void SetUp() override { fds_ = OpenFds(); }
  void ExpectNothingLeft() {
    EXPECT_EQ(OpenFds(), fds_);
    EXPECT_EQ(MemfdMaps(), 0U);
  }
  size_t fds_ = 0;
};

TEST_F(Boot, ProgressCountsEveryBackingOnce) {
  std::vector<uint64_t> seen;
  absl::StatusOr<std::unique_ptr<Memory>> memory =
      Memory::Create({SmallPool("p", ub::KiB(4), 5, 2)}, [&](uint64_t done, uint64_t total) {
        EXPECT_EQ(total, 7U);
        seen.push_back(done);
      });
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7));
  PoolFacts facts = (*memory)->Facts()[0];
  EXPECT_EQ(facts.spec.blocks, 5U);
  EXPECT_EQ(facts.reserve, 2U);
  EXPECT_EQ(facts.page_size, ub::KiB(4));
  EXPECT_EQ(facts.page_reason, "as configured");
  memory->reset();
  ExpectNothingLeft();
}

TEST_F(Boot, MoreHugePagesThanFreeFailsWithNumbersAndTakesNone) {
  SKIP_WITHOUT_PAGES(ub::MiB(2));
  const uint64_t free = FreeHugePages();
  absl::StatusOr<std::unique_ptr<Memory>> memory =
      Memory::Create({SmallPool("big", ub::MiB(2), static_cast<uint32_t>(free) + 100, 1)}, nullptr);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(ub::ReasonOf(memory.status()), ub::Reason::kPoolDoesNotFit);
  EXPECT_EQ(ub::DetailOf(memory.status(), "wanted"), absl::StrCat((free + 101) << 21));
  EXPECT_EQ(ub::DetailOf(memory.status(), "free"), absl::StrCat(free << 21));
  EXPECT_EQ(ub::DetailOf(memory.status(), "node"), "any");
  EXPECT_THAT(memory.status().message(), HasSubstr("sysctl vm.nr_hugepages="));
  EXPECT_EQ(FreeHugePages(), free);
  ExpectNothingLeft();
}

// The machine says that there are plenty of huge pages, and then there are not: somebody else was faster.
TEST_F(Boot, RunningOutHalfWayLeavesNothing) {
  SKIP_WITHOUT_PAGES(ub::MiB(2));
  const uint64_t free = FreeHugePages();
  MadeTree tree;
  tree.Write(absl::StrCat(kHugeDir, "nr_hugepages"), "1000000\n");
  tree.Write(absl::StrCat(kHugeDir, "free_hugepages"), "1000000\n");
  std::atomic<uint64_t> made{0};
  absl::StatusOr<std::unique_ptr<Memory>> memory = CreateHostMemory(
      {SmallPool("p", ub::MiB(2), static_cast<uint32_t>(free) + 20, 1)}, [&](uint64_t done, uint64_t) { made = done; },
      RealDeps(tree.root()));
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(ub::ReasonOf(memory.status()), ub::Reason::kPoolDoesNotFit) << memory.status();
  EXPECT_EQ(FreeHugePages(), free);
  ExpectNothingLeft();
}

TEST_F(Boot, SmallerPoolSaysWhy) {
  SKIP_WITHOUT_PAGES(ub::MiB(2));
  const uint64_t free = FreeHugePages();
  HostPoolConfig pool = SmallPool("p", ub::MiB(2), static_cast<uint32_t>(free) + 100, 1);
  pool.allow_smaller = true;
  absl::StatusOr<std::unique_ptr<Memory>> memory = Memory::Create({pool}, nullptr);
  ASSERT_TRUE(memory.ok()) << memory.status();
  PoolFacts facts = (*memory)->Facts()[0];
  EXPECT_EQ(facts.spec.blocks, free - 1);
  EXPECT_EQ(facts.reserve, 1U);
  EXPECT_THAT(facts.shrunk, HasSubstr(absl::StrCat(free - 1, " of ", free + 100, " blocks")));
  EXPECT_TRUE((*memory)->OpenForHolder(BlockId(facts.spec.blocks - 1), Access::kReadOnly).ok());
  EXPECT_FALSE((*memory)->OpenForHolder(BlockId(facts.spec.blocks), Access::kReadOnly).ok());
  memory->reset();
  EXPECT_EQ(FreeHugePages(), free);
}

TEST_F(Boot, AutoTakesHugePagesThatAreThere) {
  SKIP_WITHOUT_PAGES(ub::MiB(2));
  absl::StatusOr<std::unique_ptr<Memory>> memory = Memory::Create({SmallPool("p", Bytes(0), 4, 1)}, nullptr);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->Facts()[0].page_size, ub::MiB(2));
  EXPECT_EQ((*memory)->Facts()[0].locked, "yes");
}

// In a child, since limits cannot be raised again. `body` returns the exit code.
int InChild(const std::function<int()>& body) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

TEST_F(Boot, DescriptorLimitIsRaisedToTheHardOneAndThenRespected) {
  EXPECT_EQ(InChild([] {
              struct rlimit limit = {64, 400};
              if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
              if (!Memory::Create({SmallPool("p", ub::KiB(4), 80, 1)}, nullptr).ok()) return 2;
              absl::Status status = Memory::Create({SmallPool("p", ub::KiB(4), 200, 1)}, nullptr).status();
              if (ub::ReasonOf(status) != ub::Reason::kPoolDoesNotFit) return 3;
              if (ub::DetailOf(status, "limit") != "RLIMIT_NOFILE") return 4;
              return 0;
            }),
            0);
}

TEST_F(Boot, LockedMemoryLimitBindsAnOrdinaryUser) {
  if (::geteuid() == 0) return;  // root may lock without limit; memory_test_as_nobody asks this
  EXPECT_EQ(InChild([] {
              struct rlimit limit = {65536, 65536};
              if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 1;
              HostPoolConfig pool = SmallPool("p", ub::KiB(4), 1, 1);
              pool.lock_pages = Demand::kRequired;
              absl::Status status = Memory::Create({pool}, nullptr).status();
              if (ub::ReasonOf(status) != ub::Reason::kPoolDoesNotFit) return 2;
              if (ub::DetailOf(status, "limit") != "RLIMIT_MEMLOCK") return 3;
              pool.lock_pages = Demand::kIfPossible;
              absl::StatusOr<std::unique_ptr<Memory>> memory = Memory::Create({pool}, nullptr);
              if (!memory.ok()) return 4;
              if ((*memory)->Facts()[0].locked.find("no: RLIMIT_MEMLOCK leaves 64KiB") != 0) return 5;
              return 0;
            }),
            0);
}

TEST_F(Boot, NodeThatDoesNotExistIsNamed) {
  HostPoolConfig pool = SmallPool("p", ub::KiB(4), 1, 1);
  pool.numa_node = 900;
  absl::Status status = Memory::Create({pool}, nullptr).status();
  EXPECT_EQ(ub::ReasonOf(status), ub::Reason::kBadConfig);
  EXPECT_THAT(status.message(), HasSubstr("NUMA node 900"));
  pool.numa_node = 0;
  EXPECT_TRUE(Memory::Create({pool}, nullptr).ok());
}

}  // namespace
}  // namespace ubd::testing
