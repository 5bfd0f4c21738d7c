#include "client/ubctl/demo/source_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace ub::ctl {
namespace {

class SourceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/ubctl-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Write(const std::string& text) {
    std::string path = directory_ + "/file";
    std::ofstream(path) << text;
    return path;
  }
  std::string directory_;
};

TEST_F(SourceFileTest, WhatIsNoRegularFileIsNamedAndNeverWaitedFor) {
  std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& [path, kind] : std::vector<std::pair<std::string, std::string>>{
           {fifo, "a FIFO"}, {directory_, "a directory"}, {"/dev/null", "a device"}}) {
    auto file = SourceFile::Open(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_NE(std::string(file.status().message()).find(kind), std::string::npos) << file.status();
  }
}

TEST_F(SourceFileTest, MissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(SourceFile::Open(directory_ + "/none").status()));
}

TEST_F(SourceFileTest, ShortReadIsAShrunkFileAndALongOneHasGrown) {
  auto file = SourceFile::Open(Write("0123456789"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->CheckRead(0, 10, 10).ok());
  absl::Status status = file->CheckRead(2, 8, 2);
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_NE(std::string(status.message()).find("shrank"), std::string::npos);
  EXPECT_NE(std::string(status.message()).find("ends at 4 now"), std::string::npos);
  EXPECT_NE(std::string(file->CheckRead(0, 10, 11).message()).find("grew"), std::string::npos);
  EXPECT_FALSE(file->Changed());
  ASSERT_EQ(truncate(file->path().c_str(), 4), 0);
  EXPECT_TRUE(file->Changed());
}

TEST_F(SourceFileTest, GrowingFileIsSaidInsteadOfCutOff) {
  auto file = SourceFile::Open(Write("0123456789"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->CheckEnd().ok());
  std::ofstream(file->path(), std::ios::app) << "x";
  EXPECT_NE(std::string(file->CheckEnd().message()).find("grew"), std::string::npos);
}

TEST_F(SourceFileTest, SecondReadGivesTheHashOfTheBytes) {
  auto file = SourceFile::Open(Write("0123456789"));
  ASSERT_TRUE(file.ok());
  Hash pieces;
  std::string text = "0123456789";
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  pieces.Add(bytes, 7);
  pieces.Add(bytes + 7, 3);
  EXPECT_EQ(*file->HashAgain(), pieces.Value());
  EXPECT_EQ(HashText(*file->HashAgain()), "e353667619ec664b49655fc9692165fb") << "XXH3-128 of 0123456789";
}

}  // namespace
}  // namespace ub::ctl
