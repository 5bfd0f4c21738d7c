// What the kernel refuses: registration to an ordinary user, whole rings, submissions while it is short of memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "daemon/engine/file_ring.h"
#include "daemon/engine/ring_setup.h"
#include "proto/wire/error.h"
#include "tests/unit/engine/file_testing.h"
#include "tests/unit/engine/ring_testing.h"
#include "tests/unit/engine/syscall_filter.h"

namespace ubd::testing {
namespace {

#define CHECK_THAT(condition) \
  if (!(condition)) return std::string("not so: " #condition)

bool Says(const absl::Status& status, std::string_view word) {
  return status.message().find(absl::string_view(word.data(), word.size())) != absl::string_view::npos;
}

bool LimitMemlock(uint64_t bytes) {
  const struct rlimit limit = {bytes, bytes};
  return ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

class OrdinaryUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    SKIP_WITHOUT_DIRECT(folder_);
    path_ = folder_.Write("data", Pattern(4096));
  }
  Folder folder_;
  std::string path_;
};

TEST_F(OrdinaryUser, WithLittleMemlockTransfersWithoutRegistration) {
  EXPECT_EQ(InChild(true,
                    [&]() -> std::string {
                      CHECK_THAT(LimitMemlock(8 << 20));
                      auto ring = FileRing::Create({.depth = 4, .slots = 9});
                      CHECK_THAT(ring.ok());
                      Memory4K block(64 << 20);
                      for (uint32_t slot = 0; slot < 9; ++slot) {
                        CHECK_THAT((*ring)->Register(slot, block.data(), Bytes(block.size())).ok());
                        CHECK_THAT(!(*ring)->Registered(slot));
                      }
                      const std::string text = (*ring)->RegistrationText();
                      CHECK_THAT(text.starts_with("0 of 9 backings: "));
                      CHECK_THAT(text.find("LimitMEMLOCK=infinity") != std::string::npos);
                      CHECK_THAT(text.find("ulimit -l") != std::string::npos);
                      CHECK_THAT(text.find("8MiB") != std::string::npos);
                      ub::UniqueFd file = OpenFile(path_, O_RDONLY | O_DIRECT);
                      CHECK_THAT(!(*ring)->Post({FilePiece::Kind::kRead, file.get(), block.data(), 4096, 0, 0, 1}));
                      std::vector<FileResult> results = Finish(**ring, 1);
                      CHECK_THAT(results.size() == 1 && results[0].result == 4096);
                      CHECK_THAT(std::string(block.data(), 4096) == Pattern(4096));
                      return "";
                    }),
            "");
}

TEST_F(OrdinaryUser, WhoRequiresRegistrationIsToldTheCure) {
  EXPECT_EQ(InChild(true,
                    []() -> std::string {
                      CHECK_THAT(LimitMemlock(8 << 20));
                      auto ring = FileRing::Create({.depth = 4, .slots = 1, .registration = Demand::kRequired});
                      CHECK_THAT(ring.ok());
                      Memory4K block(64 << 20);
                      absl::Status status = (*ring)->Register(0, block.data(), Bytes(block.size()));
                      CHECK_THAT(status.code() == absl::StatusCode::kResourceExhausted);
                      CHECK_THAT(ub::ReasonOf(status) == ub::Reason::kPoolDoesNotFit);
                      CHECK_THAT(Says(status, "memlock") && Says(status, "LimitMEMLOCK=infinity"));
                      CHECK_THAT(ub::DetailOf(status, "limit") == std::to_string(8 << 20));
                      CHECK_THAT(!(*ring)->Registered(0));
                      return "";
                    }),
            "");
}

TEST_F(OrdinaryUser, WhatFitsIsRegisteredAndRoomIsUsedAgain) {
  EXPECT_EQ(InChild(true,
                    []() -> std::string {
                      CHECK_THAT(LimitMemlock(4 << 20));
                      auto ring = FileRing::Create({.depth = 4, .slots = 3});
                      CHECK_THAT(ring.ok());
                      Memory4K block(3 << 20);
                      for (uint32_t slot : {0U, 1U}) {
                        CHECK_THAT((*ring)->Register(slot, block.data(), Bytes(block.size())).ok());
                      }
                      CHECK_THAT((*ring)->Registered(0) && !(*ring)->Registered(1));
                      CHECK_THAT((*ring)->RegistrationText().starts_with("1 of 2 backings: "));
                      (*ring)->Unregister(0);
                      (*ring)->Unregister(1);
                      CHECK_THAT((*ring)->Register(2, block.data(), Bytes(block.size())).ok());
                      CHECK_THAT((*ring)->Registered(2));
                      CHECK_THAT((*ring)->RegistrationText() == "1 of 1 backings");
                      return "";
                    }),
            "");
}

TEST(Limits, MoreBackingsThanARingHasBuffers) {
  constexpr uint32_t kMost = 16384;
  auto required = FileRing::Create({.depth = 4, .slots = kMost + 1, .registration = Demand::kRequired});
  ASSERT_FALSE(required.ok());
  EXPECT_EQ(required.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Says(required.status(), "16384") && Says(required.status(), "larger blocks")) << required.status();

  auto ring = FileRing::Create({.depth = 4, .slots = kMost + 1});
  ASSERT_TRUE(ring.ok()) << ring.status();
  Memory4K block(4096);
  EXPECT_TRUE((*ring)->Register(kMost, block.data(), Bytes(4096)).ok());
  EXPECT_TRUE((*ring)->Register(kMost - 1, block.data(), Bytes(4096)).ok());
  EXPECT_FALSE((*ring)->Registered(kMost));
  EXPECT_TRUE((*ring)->Registered(kMost - 1));
  EXPECT_TRUE((*ring)->RegistrationText().starts_with("1 of 2 backings: io_uring takes at most 16384"))
      << (*ring)->RegistrationText();
}

TEST(Limits, ABlockThatIsTooLargeForABuffer) {
  auto ring = FileRing::Create({.depth = 4, .slots = 1, .registration = Demand::kRequired});
  ASSERT_TRUE(ring.ok()) << ring.status();
  Memory4K block(4096);
  absl::Status status = (*ring)->Register(0, block.data(), Bytes((uint64_t{1} << 30) + 4096));
  EXPECT_TRUE(Says(status, "1GiB")) << status;
  // And one that no backing has.
  EXPECT_FALSE((*ring)->Register(1, block.data(), Bytes(4096)).ok());
  EXPECT_FALSE((*ring)->Registered(1));
  (*ring)->Unregister(1);
}

TEST(Limits, MemoryThatIsNotThereIsRefused) {
  auto ring = FileRing::Create({.depth = 4, .slots = 1, .registration = Demand::kRequired});
  ASSERT_TRUE(ring.ok()) << ring.status();
  absl::Status status = (*ring)->Register(0, reinterpret_cast<void*>(4096), Bytes(4096));
  EXPECT_EQ(ub::ReasonOf(status), ub::Reason::kKernelRefused) << status;
  EXPECT_EQ(ub::DetailOf(status, "errno"), std::to_string(EFAULT));
}

TEST(Limits, RegistrationCanBeOff) {
  auto ring = FileRing::Create({.depth = 4, .slots = 2, .registration = Demand::kOff});
  ASSERT_TRUE(ring.ok()) << ring.status();
  Memory4K block(4096);
  EXPECT_TRUE((*ring)->Register(0, block.data(), Bytes(4096)).ok());
  EXPECT_FALSE((*ring)->Registered(0));
  EXPECT_TRUE((*ring)->RegistrationText().starts_with("0 of 1 backings: ")) << (*ring)->RegistrationText();
  (*ring)->Unregister(0);
}

TEST(Limits, ADepthThatCannotBe) {
  for (uint32_t depth : {0U, 8193U, UINT32_MAX}) {
    auto ring = FileRing::Create({.depth = depth, .slots = 1});
    EXPECT_EQ(ring.status().code(), absl::StatusCode::kInvalidArgument) << depth;
  }
  EXPECT_TRUE(FileRing::Create({.depth = 8192, .slots = 1}).ok());
}

TEST(NoRing, ASeccompFilterIsNamed) {
  for (int error : {EPERM, ENOSYS}) {
    EXPECT_EQ(InChild(false,
                      [error]() -> std::string {
                        CHECK_THAT(RefuseSyscall(SYS_io_uring_setup, error));
                        auto ring = FileRing::Create({.depth = 4, .slots = 1});
                        CHECK_THAT(ring.status().code() == absl::StatusCode::kUnavailable);
                        CHECK_THAT(Says(ring.status(), "seccomp") && Says(ring.status(), "io_uring_setup"));
                        return "";
                      }),
              "");
  }
}

TEST(NoRing, TheSysctlIsNamed) {
  Folder made;
  made.Write("proc/sys/kernel/io_uring_disabled", "2\n");
  absl::Status status = ExplainNoRing(EPERM, SystemFiles(made.path()));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Says(status, "kernel.io_uring_disabled is 2") && Says(status, "sysctl")) << status;
}

TEST(NoRing, NoDescriptorLeft) {
  EXPECT_EQ(InChild(false,
                    []() -> std::string {
                      const struct rlimit none = {0, 0};
                      CHECK_THAT(::setrlimit(RLIMIT_NOFILE, &none) == 0);
                      auto ring = FileRing::Create({.depth = 4, .slots = 1});
                      CHECK_THAT(ring.status().code() == absl::StatusCode::kUnavailable);
                      CHECK_THAT(Says(ring.status(), "LimitNOFILE"));
                      return "";
                    }),
            "");
}

// A kernel that is short of memory answers EAGAIN to a submission, a signal makes it EINTR. Nothing may be lost, nor
// wait for a wake-up that cannot come.
TEST(BusyKernel, SubmissionsAreNotLost) {
  Folder folder;
  SKIP_WITHOUT_DIRECT(folder);
  folder.Write("data", Pattern(4096));
  EXPECT_EQ(InChild(false,
                    [&]() -> std::string {
                      auto ring = FileRing::Create({.depth = 4, .slots = 1});
                      CHECK_THAT(ring.ok());
                      ub::UniqueFd file = OpenFile(folder / "data", O_RDONLY);
                      Memory4K memory(4096);
                      SyscallAnswers kernel({EAGAIN, EINTR, EAGAIN, EBUSY});
                      std::string outcome = "the thread did not run";
                      std::thread lane([&] {
                        outcome = [&]() -> std::string {
                          CHECK_THAT(kernel.FilterThisThread(SYS_io_uring_enter));
                          for (uint64_t tag : {1, 2, 3}) {
                            (*ring)->Post({FilePiece::Kind::kRead, file.get(), memory.data(), 4096, 0, 0, tag});
                          }
                          CHECK_THAT(Finish(**ring, 3).size() == 3);
                          return "";
                        }();
                        kernel.Stop();
                      });
                      kernel.Serve();
                      lane.join();
                      if (outcome.empty()) CHECK_THAT(kernel.left() == 0);
                      return outcome;
                    }),
            "");
}

}  // namespace
}  // namespace ubd::testing
