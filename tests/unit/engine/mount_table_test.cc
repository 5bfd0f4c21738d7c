#include "daemon/engine/mount_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/engine/file_testing.h"

namespace ubd::testing {
namespace {

constexpr char kExt4[] = "27 1 254:0 / / rw,relatime shared:1 master:3 - ext4 /dev/vda rw,discard";

TEST(MountLine, HasTheTypeBehindTheDash) {
  EXPECT_EQ(TypeInMountLine(kExt4, 27), "ext4");
  EXPECT_EQ(TypeInMountLine("31 27 0:9 / /mnt rw - fuse.sshfs host: rw", 31), "fuse.sshfs");
}

TEST(MountLine, IsAboutOneMountOnly) {
  for (uint64_t other : {2, 7, 270, 1, 0}) EXPECT_EQ(TypeInMountLine(kExt4, other), std::nullopt) << other;
  EXPECT_EQ(TypeInMountLine("027 1 254:0 / / rw - ext4 /dev/vda rw", 27), std::nullopt);
  EXPECT_EQ(TypeInMountLine("27x 1 254:0 / / rw - ext4 /dev/vda rw", 27), std::nullopt);
}

// A folder named "- ext4" is shown with its blank escaped; one named "-" stands where no dash is looked for.
TEST(MountLine, IsNotFooledByNames) {
  EXPECT_EQ(TypeInMountLine("40 1 0:5 / /a/-\\040ext4 rw - fuse me rw", 40), "fuse");
  EXPECT_EQ(TypeInMountLine("40 1 0:5 - - rw - fuse ext4 rw", 40), "fuse");
}

TEST(MountLine, CutShortSaysNothing) {
  for (const char* line : {"", "40", "40 1 0:5 / /a rw", "40 1 0:5 / /a rw -", "40 1 0:5 / /a rw - "}) {
    EXPECT_EQ(TypeInMountLine(line, 40), std::nullopt) << line;
  }
}

class MadeTable : public ::testing::Test {
 protected:
  void SetUp() override { folder_.Write("proc/self/fdinfo/5", "pos:\t0\nflags:\t0100000\nmnt_id:\t40\nino:\t7\n"); }
  Folder folder_;
  MountTable table_{folder_.path()};
};

TEST_F(MadeTable, LooksIntoTheOtherProcessWhereItsOwnDoesNotKnow) {
  folder_.Write("proc/self/mountinfo", absl::StrCat(kExt4, "\n"));
  folder_.Write("proc/9/mountinfo", absl::StrCat(kExt4, "\n40 1 0:5 / / rw - xfs /dev/vdb rw\n"));
  EXPECT_EQ(table_.FileSystemOf(5, 9), "xfs");
  EXPECT_EQ(table_.FileSystemOf(5, 0), std::nullopt);
  EXPECT_EQ(table_.FileSystemOf(5, 10), std::nullopt);
  EXPECT_EQ(table_.FileSystemOf(6, 9), std::nullopt);
}

TEST_F(MadeTable, FindsALineAcrossReads) {
  std::string filler;
  for (int i = 1000; i < 3000; ++i) absl::StrAppend(&filler, i, " 1 0:5 / /", i, " rw - tmpfs tmpfs rw\n");
  folder_.Write("proc/self/mountinfo", absl::StrCat(filler, "40 1 0:5 / / rw - xfs /dev/vdb rw\n"));
  EXPECT_EQ(table_.FileSystemOf(5, 0), "xfs");
}

TEST_F(MadeTable, GivesUpOnATableOrALineWithoutEnd) {
  const std::string wanted = "40 1 0:5 / / rw - xfs /dev/vdb rw\n";
  const std::string line = absl::StrCat("41 1 0:5 / /", std::string(1000, 'x'), " rw - tmpfs tmpfs rw\n");
  std::string table;
  while (table.size() < MountTable::kMostBytes / 2) table += line;
  folder_.Write("proc/self/mountinfo", table + wanted);
  EXPECT_EQ(table_.FileSystemOf(5, 0), "xfs");
  folder_.Write("proc/self/mountinfo", table + table + line + wanted);
  EXPECT_EQ(table_.FileSystemOf(5, 0), std::nullopt);
  folder_.Write("proc/self/mountinfo", std::string(200000, 'x') + "\n" + wanted);
  EXPECT_EQ(table_.FileSystemOf(5, 0), std::nullopt);
}

// A driver may add lines to fdinfo, but only behind the kernel's own.
TEST_F(MadeTable, BelievesTheFirstMountIdOnly) {
  folder_.Write("proc/self/fdinfo/5", "pos:\t0\nflags:\t0100000\nmnt_id:\t41\nino:\t7\nmnt_id:\t40\n");
  folder_.Write("proc/self/mountinfo", "40 1 0:5 / / rw - xfs /dev/vdb rw\n");
  EXPECT_EQ(table_.FileSystemOf(5, 0), std::nullopt);
}

TEST(RealTable, KnowsProcAndNoPipes) {
  MountTable table;
  EXPECT_EQ(table.FileSystemOf(OpenFile("/proc/self/stat", O_RDONLY).get(), 0), "proc");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(table.FileSystemOf(ends[0], ::getpid()), std::nullopt);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ubd::testing
