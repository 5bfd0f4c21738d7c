// Limits that a pool meets before anything is allocated, on made trees of /proc and /sys: no test here depends on this
// machine.
#include "daemon/memory/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/memory/cgroup_limits.h"
#include "daemon/memory/numa.h"
#include "proto/wire/error.h"
#include "tests/unit/memory/testing.h"

namespace ubd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr ProcessLimits kPlenty = {100000, 10, UINT64_MAX, 0, 1000000};
const Bytes kSmall = ub::KiB(4);
const Bytes kHuge = ub::MiB(2);
const char kHugeDir[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/";

class Preflight : public ::testing::Test {
 protected:
  Preflight() {
    tree_.Write("/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    1048576 kB\n");
    tree_.Write("/sys/devices/system/node/has_memory", "0-1\n");
    HugePages(kHugeDir, 0, 0, 0);
  }
  void HugePages(const std::string& dir, int total, int free, int reserved) {
    tree_.Write(dir + "nr_hugepages", absl::StrCat(total, "\n"));
    tree_.Write(dir + "free_hugepages", absl::StrCat(free, "\n"));
    tree_.Write(dir + "resv_hugepages", absl::StrCat(reserved, "\n"));
  }
  void Unified(const std::string& group) {
    tree_.Write("/proc/self/cgroup", "0::" + group + "\n");
    tree_.Write("/proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  absl::StatusOr<std::vector<PoolPlan>> Plan(const std::vector<HostPoolConfig>& pools, ProcessLimits limits = kPlenty) {
    return PlanPools(pools, tree_.files(), limits);
  }
  absl::Status Refusal(const std::vector<HostPoolConfig>& pools, ProcessLimits limits = kPlenty) {
    absl::StatusOr<std::vector<PoolPlan>> plans = Plan(pools, limits);
    EXPECT_FALSE(plans.ok());
    return plans.status();
  }
  void ExpectDetails(const absl::Status& status, const std::string& wanted, const std::string& free,
                     const std::string& limit) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(ub::ReasonOf(status), ub::Reason::kPoolDoesNotFit);
    EXPECT_EQ(ub::DetailOf(status, "wanted"), wanted);
    EXPECT_EQ(ub::DetailOf(status, "free"), free);
    EXPECT_EQ(ub::DetailOf(status, "limit"), limit);
  }
  MadeTree tree_;
};

TEST_F(Preflight, HugePagesCountTheReserveAndOthersReservations) {
  HugePages(kHugeDir, 20, 12, 3);
  EXPECT_TRUE(Plan({SmallPool("p", kHuge, 8, 1)}).ok());
  absl::Status status = Refusal({SmallPool("p", kHuge, 8, 2)});
  ExpectDetails(status, "20971520", "18874368", absl::StrCat(kHugeDir, "free_hugepages"));
  EXPECT_EQ(ub::DetailOf(status, "pool"), "p");
  EXPECT_EQ(ub::DetailOf(status, "node"), "any");
  EXPECT_EQ(ub::DetailOf(status, "page_size"), "2097152");
  EXPECT_THAT(status.message(), HasSubstr("sysctl vm.nr_hugepages=21"));
}

TEST_F(Preflight, PoolsAreAddedUp) {
  HugePages(kHugeDir, 10, 10, 0);
  EXPECT_TRUE(Plan({SmallPool("a", kHuge, 4, 1), SmallPool("b", kHuge, 4, 1)}).ok());
  absl::Status status = Refusal({SmallPool("a", kHuge, 4, 1), SmallPool("b", kHuge, 5, 1)});
  EXPECT_EQ(ub::DetailOf(status, "pool"), "b");
  EXPECT_EQ(ub::DetailOf(status, "free"), "10485760");
}

TEST_F(Preflight, HugePagesOfANodeAreItsOwn) {
  HugePages(kHugeDir, 40, 40, 0);
  HugePages("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/", 4, 4, 0);
  HostPoolConfig pool = SmallPool("p", kHuge, 4, 1);
  pool.numa_node = 1;
  absl::Status status = Refusal({pool});
  ExpectDetails(status, "10485760", "8388608",
                "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages");
  EXPECT_EQ(ub::DetailOf(status, "node"), "1");
  EXPECT_THAT(status.message(),
              HasSubstr("echo 5 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"));
}

TEST_F(Preflight, AutoTakesHugePagesWhenThereAreEnoughAndSaysWhyNotElse) {
  HugePages(kHugeDir, 9, 9, 0);
  absl::StatusOr<std::vector<PoolPlan>> huge = Plan({SmallPool("p", Bytes(0), 8, 1)});
  ASSERT_TRUE(huge.ok());
  EXPECT_EQ((*huge)[0].page_size, kHuge);
  EXPECT_EQ((*huge)[0].page_reason, "auto: there are enough huge pages for the pool and its reserve (18MiB)");
  EXPECT_EQ((*huge)[0].locked, "yes");
  absl::StatusOr<std::vector<PoolPlan>> small = Plan({SmallPool("p", Bytes(0), 8, 2)});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ((*small)[0].page_size, kSmall);
  EXPECT_EQ((*small)[0].page_reason,
            absl::StrCat("auto: the pool and its reserve need 20MiB in huge pages of 2MiB, but ", kHugeDir,
                         "free_hugepages leaves 18MiB"));
}

TEST_F(Preflight, AutoTakesOnlyWhatPoolsThatNameTheirPagesLeave) {
  HugePages(kHugeDir, 10, 10, 0);
  absl::StatusOr<std::vector<PoolPlan>> plans =
      Plan({SmallPool("auto", Bytes(0), 5, 1), SmallPool("named", kHuge, 5, 1)});
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_EQ((*plans)[0].page_size, kSmall);
  EXPECT_EQ((*plans)[1].page_size, kHuge);
}

TEST_F(Preflight, MemoryAvailable) {
  ExpectDetails(Refusal({SmallPool("p", kSmall, 512, 1)}), "1075838976", "1073741824", "/proc/meminfo MemAvailable");
  EXPECT_TRUE(Plan({SmallPool("p", kSmall, 511, 1)}).ok());
}

TEST_F(Preflight, StrictOvercommit) {
  tree_.Write("/proc/meminfo", "MemAvailable: 1048576 kB\nCommitLimit: 20480 kB\nCommitted_AS: 10240 kB\n");
  EXPECT_TRUE(Plan({SmallPool("p", kSmall, 9, 1)}).ok());
  tree_.Write("/proc/sys/vm/overcommit_memory", "2\n");
  ExpectDetails(Refusal({SmallPool("p", kSmall, 9, 1)}), "20971520", "10485760", "/proc/meminfo CommitLimit");
}

TEST_F(Preflight, MemoryOfANodeIsItsOwn) {
  tree_.Write("/sys/devices/system/node/node1/meminfo",
              "Node 1 MemTotal:  999999 kB\nNode 1 MemFree:     4096 kB\nNode 1 Inactive(file):   4096 kB\nNode 1 "
              "Inactive:  90000 kB\n");
  HostPoolConfig pool = SmallPool("p", kSmall, 4, 1);
  pool.numa_node = 1;
  ExpectDetails(Refusal({pool}), "10485760", "8388608", "/sys/devices/system/node/node1/meminfo");
}

TEST_F(Preflight, AncestorsLimitInVersionTwo) {
  Unified("/a/b");
  tree_.Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  tree_.Write("/sys/fs/cgroup/a/b/memory.current", "4096\n");
  tree_.Write("/sys/fs/cgroup/a/memory.max", "20971520\n");
  tree_.Write("/sys/fs/cgroup/a/memory.current", "14680064\n");
  tree_.Write("/sys/fs/cgroup/a/memory.stat", "anon 4096\ninactive_file 4194304\nactive_file 0\n");
  EXPECT_TRUE(Plan({SmallPool("p", kSmall, 4, 1)}).ok());
  absl::Status status = Refusal({SmallPool("p", kSmall, 5, 1)});
  ExpectDetails(status, "12582912", "10485760", "/sys/fs/cgroup/a/memory.max");
  EXPECT_THAT(status.message(), HasSubstr("echo 23068672 > /sys/fs/cgroup/a/memory.max"));
  tree_.Write("/sys/fs/cgroup/a/b/memory.high", "8192\n");
  ExpectDetails(Refusal({SmallPool("p", kSmall, 1, 1)}), "4194304", "4096", "/sys/fs/cgroup/a/b/memory.high");
}

TEST_F(Preflight, AncestorsLimitInVersionOneBesideAnEmptyUnifiedTree) {
  tree_.Write("/proc/self/cgroup", "5:devices:/\n4:memory:/top/leaf\n0::/\n");
  tree_.Write("/proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  const std::string top = "/sys/fs/cgroup/memory/top/";
  tree_.Write(top + "leaf/memory.limit_in_bytes", "9223372036854771712\n");
  tree_.Write(top + "leaf/memory.usage_in_bytes", "0\n");
  EXPECT_TRUE(Plan({SmallPool("p", kSmall, 4, 1)}).ok());
  tree_.Write(top + "memory.limit_in_bytes", "10485760\n");
  tree_.Write(top + "memory.usage_in_bytes", "2097152\n");
  ExpectDetails(Refusal({SmallPool("p", kSmall, 4, 1)}), "10485760", "8388608", top + "memory.limit_in_bytes");
}

TEST_F(Preflight, GroupsSeenThroughABindMountOrANamespace) {
  tree_.Write("/proc/self/cgroup", "0::/../outside\n");
  tree_.Write("/proc/self/mountinfo", "30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  tree_.Write("/sys/fs/cgroup/memory.max", "4096\n");
  tree_.Write("/sys/fs/cgroup/memory.current", "0\n");
  EXPECT_THAT(MemoryLimits(tree_.files()), ::testing::SizeIs(1));
  tree_.Write("/proc/self/cgroup", "0::/docker/x\n");
  EXPECT_THAT(MemoryLimits(tree_.files()), ::testing::SizeIs(1));
}

TEST_F(Preflight, HugePageGroupsInBothVersions) {
  HugePages(kHugeDir, 100, 100, 0);
  Unified("/g");
  tree_.Write("/sys/fs/cgroup/g/hugetlb.2MB.max", "10485760\n");
  tree_.Write("/sys/fs/cgroup/g/hugetlb.2MB.current", "2097152\n");
  ExpectDetails(Refusal({SmallPool("p", kHuge, 4, 1)}), "10485760", "8388608", "/sys/fs/cgroup/g/hugetlb.2MB.max");
  tree_.Write("/sys/fs/cgroup/g/hugetlb.2MB.rsvd.max", "4194304\n");
  tree_.Write("/sys/fs/cgroup/g/hugetlb.2MB.rsvd.current", "0\n");
  EXPECT_EQ(ub::DetailOf(Refusal({SmallPool("p", kHuge, 4, 1)}), "limit"), "/sys/fs/cgroup/g/hugetlb.2MB.rsvd.max");
  tree_.Write("/proc/self/cgroup", "7:hugetlb:/h\n");
  tree_.Write("/proc/self/mountinfo", "35 31 0:32 / /cg/hugetlb rw - cgroup cgroup rw,hugetlb\n");
  tree_.Write("/cg/hugetlb/h/hugetlb.2MB.limit_in_bytes", "2097152\n");
  tree_.Write("/cg/hugetlb/h/hugetlb.2MB.usage_in_bytes", "0\n");
  ExpectDetails(Refusal({SmallPool("p", kHuge, 4, 1)}), "10485760", "2097152",
                "/cg/hugetlb/h/hugetlb.2MB.limit_in_bytes");
}

TEST_F(Preflight, MemoryGroupsCountHugePagesOnlyWhereTheKernelChargesThem) {
  HugePages(kHugeDir, 100, 100, 0);
  Unified("/");
  tree_.Write("/sys/fs/cgroup/memory.max", "4096\n");
  tree_.Write("/sys/fs/cgroup/memory.current", "0\n");
  EXPECT_TRUE(Plan({SmallPool("p", kHuge, 4, 1)}).ok());
  tree_.Write("/proc/self/mountinfo",
              "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate,memory_hugetlb_accounting\n");
  EXPECT_FALSE(Plan({SmallPool("p", kHuge, 4, 1)}).ok());
}

TEST_F(Preflight, FileDescriptorsAndMappings) {
  ProcessLimits limits = kPlenty;
  limits.max_fds = 10 + 256 + 5;
  EXPECT_TRUE(Plan({SmallPool("p", kSmall, 4, 1)}, limits).ok());
  absl::Status status = Refusal({SmallPool("p", kSmall, 5, 1)}, limits);
  ExpectDetails(status, "6", "5", "RLIMIT_NOFILE");
  EXPECT_EQ(ub::DetailOf(status, "unit"), "file descriptors");
  EXPECT_THAT(status.message(), HasSubstr("LimitNOFILE=272"));
  limits = kPlenty;
  limits.max_maps = 4096 + 5;
  ExpectDetails(Refusal({SmallPool("p", kSmall, 5, 1)}, limits), "6", "5", "/proc/sys/vm/max_map_count");
}

TEST_F(Preflight, LockedMemoryRequiredWantedOrOff) {
  ProcessLimits limits = kPlenty;
  limits.max_locked = ub::MiB(12).count();
  limits.locked = ub::MiB(2).count();
  HostPoolConfig pool = SmallPool("p", kSmall, 5, 1);
  absl::StatusOr<std::vector<PoolPlan>> wanted = Plan({pool}, limits);
  ASSERT_TRUE(wanted.ok());
  EXPECT_FALSE((*wanted)[0].lock);
  EXPECT_THAT((*wanted)[0].locked, StartsWith("no: RLIMIT_MEMLOCK leaves 10MiB of 12MiB; cure: LimitMEMLOCK=infinity"));
  pool.lock_pages = Demand::kRequired;
  absl::Status status = Refusal({pool}, limits);
  ExpectDetails(status, "12582912", "10485760", "RLIMIT_MEMLOCK");
  EXPECT_THAT(status.message(), HasSubstr("LimitMEMLOCK=infinity"));
  pool.spec.blocks = 4;
  absl::StatusOr<std::vector<PoolPlan>> fits = Plan({pool}, limits);
  ASSERT_TRUE(fits.ok());
  EXPECT_TRUE((*fits)[0].lock);
  // What is required is served before what is wanted, whatever the order.
  absl::StatusOr<std::vector<PoolPlan>> both = Plan({SmallPool("w", kSmall, 1, 1), pool}, limits);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_FALSE((*both)[0].lock);
  pool.lock_pages = Demand::kOff;
  EXPECT_EQ((*Plan({pool}))[0].locked, "no: lock_pages is OFF");
}

TEST_F(Preflight, SmallerOnlyWhereAllowedAndNotBelowTheMinimum) {
  HugePages(kHugeDir, 9, 9, 0);
  HostPoolConfig pool = SmallPool("p", kHuge, 16, 2);
  pool.allow_smaller = true;
  absl::StatusOr<std::vector<PoolPlan>> plans = Plan({pool});
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_EQ((*plans)[0].blocks, 8U);
  EXPECT_EQ((*plans)[0].reserve, 1U);
  EXPECT_THAT((*plans)[0].shrunk,
              StartsWith(absl::StrCat("8 of 16 blocks: ", kHugeDir, "free_hugepages leaves 18MiB of 36MiB")));
  pool.min_blocks = 9;
  EXPECT_FALSE(Plan({pool}).ok());
  HugePages(kHugeDir, 1, 1, 0);
  pool.min_blocks = 1;
  EXPECT_FALSE(Plan({pool}).ok()) << "a reserve is needed too";
}

TEST_F(Preflight, UnknownNodeNamesThoseThatExist) {
  HostPoolConfig pool = SmallPool("p", kSmall, 1, 1);
  pool.numa_node = 7;
  absl::Status status = Refusal({pool});
  EXPECT_EQ(ub::ReasonOf(status), ub::Reason::kBadConfig);
  EXPECT_THAT(status.message(), HasSubstr("NUMA node 7 does not exist or has no memory; nodes with memory here: 0, 1"));
  EXPECT_THAT(ParseNodeList("0-2,5\n"), ElementsAre(0, 1, 2, 5));
}

TEST_F(Preflight, PageSizeThatTheMachineLacksOrTheBlockDoesNotDivide) {
  EXPECT_THAT(Refusal({SmallPool("p", ub::GiB(1), 1, 1)}).message(),
              HasSubstr("has no pages of 1GiB; it has 4KiB, 2MiB"));
  HugePages("/sys/kernel/mm/hugepages/hugepages-1048576kB/", 9, 9, 0);
  EXPECT_THAT(Refusal({SmallPool("p", ub::GiB(1), 1, 1)}).message(),
              HasSubstr("block_size 2MiB is not a multiple of page_size 1GiB"));
  HostPoolConfig pool = SmallPool("p", ub::GiB(1), 1, 1);
  pool.spec.block_bytes = ub::GiB(1);
  EXPECT_TRUE(Plan({pool}).ok());
  pool.spec.blocks = 9;
  EXPECT_THAT(Refusal({pool}).message(),
              HasSubstr("echo 10 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"));
}

TEST_F(Preflight, BlocksOutOfRange) {
  for (Bytes bytes : {Bytes(0), ub::MiB(3), ub::GiB(2), Bytes(UINT64_MAX)}) {
    HostPoolConfig pool = SmallPool("p", kSmall, 1, 1);
    pool.spec.block_bytes = bytes;
    EXPECT_EQ(ub::ReasonOf(Refusal({pool})), ub::Reason::kBadConfig) << bytes;
  }
  EXPECT_EQ(ub::ReasonOf(Refusal({SmallPool("p", kSmall, 0, 1)})), ub::Reason::kBadConfig);
  HostPoolConfig vast = SmallPool("p", kSmall, UINT32_MAX, UINT32_MAX);
  vast.spec.block_bytes = ub::GiB(1);
  EXPECT_EQ(ub::ReasonOf(Refusal({vast})), ub::Reason::kPoolDoesNotFit);
}

}  // namespace
}  // namespace ubd::testing
