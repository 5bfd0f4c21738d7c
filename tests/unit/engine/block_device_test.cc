#include "daemon/engine/block_device.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/engine/file_testing.h"

namespace ubd::testing {
namespace {

class MadeDisks : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("sys/devices/pci/block/vda/size", "8");
    folder_.Write("sys/devices/pci/block/vda/vda1/partition", "1\n");
    folder_.Write("sys/devices/virtual/block/md0/slaves/vda1/size", "8");
    folder_.Write("sys/devices/virtual/block/md1/slaves/nbd3/size", "8");
    Link("sys/dev/block/254:0", "../../devices/pci/block/vda");
    Link("sys/dev/block/254:1", "../../devices/pci/block/vda/vda1");
    Link("sys/dev/block/9:0", "../../devices/virtual/block/md0");
    Link("sys/block/vda", "../devices/pci/block/vda");
    Link("sys/block/md0", "../devices/virtual/block/md0");
    Link("sys/block/md1", "../devices/virtual/block/md1");
  }
  void Link(const std::string& name, const std::string& target) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::filesystem::create_directory_symlink(target, folder_ / name);
  }
  Folder folder_;
  BlockDevices devices_{folder_.path()};
  const std::vector<std::string> slow_ = {"nbd", "dm-"};
};

TEST_F(MadeDisks, NamesTheDiskOfAPartition) {
  EXPECT_EQ(devices_.DiskName(254, 0), "vda");
  EXPECT_EQ(devices_.DiskName(254, 1), "vda");
  EXPECT_EQ(devices_.DiskName(9, 0), "md0");
}

TEST_F(MadeDisks, HasNoNameForAMadeUpNumber) { EXPECT_EQ(devices_.DiskName(0, 38), ""); }

TEST_F(MadeDisks, IsSlowByPrefix) {
  EXPECT_TRUE(devices_.IsSlow("nbd0", slow_));
  EXPECT_TRUE(devices_.IsSlow("dm-11", slow_));
  EXPECT_FALSE(devices_.IsSlow("vda", slow_));
  EXPECT_FALSE(devices_.IsSlow("", slow_));
}

TEST_F(MadeDisks, IsSlowByWhatItIsMadeOf) {
  EXPECT_TRUE(devices_.IsSlow("md1", slow_));
  EXPECT_FALSE(devices_.IsSlow("md0", slow_));
}

TEST_F(MadeDisks, EndsOnATreeThatBitesItsTail) {
  folder_.Write("sys/devices/virtual/block/md2/slaves/md2/size", "8");
  Link("sys/block/md2", "../devices/virtual/block/md2");
  EXPECT_FALSE(devices_.IsSlow("md2", slow_));
}

}  // namespace
}  // namespace ubd::testing
