#include "daemon/engine/close_aside.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <vector>

#include "tests/support/silent_fuse.h"
#include "tests/unit/engine/file_testing.h"

namespace ubd::testing {
namespace {

// Waits for the end of closes, of which nothing but their number tells.
bool AllClosed(size_t but = 0) {
  for (int i = 0; i < 10000 && ClosesUnderWay() > but; ++i) ::poll(nullptr, 0, 1);
  return ClosesUnderWay() <= but;
}

TEST(CloseAside, Closes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ub::UniqueFd reader(ends[0]);
  CloseAside(ub::UniqueFd(ends[1]));
  pollfd hang_up = {reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&hang_up, 1, 10000), 1);
  EXPECT_NE(hang_up.revents & POLLHUP, 0);
  EXPECT_TRUE(AllClosed());
}

TEST(CloseAside, TakesNothing) {
  CloseAside(ub::UniqueFd());
  EXPECT_TRUE(AllClosed());
}

TEST(CloseAside, OthersAreClosedBesideAFewThatAreStuck) {
  if (std::string why = SilentFuse::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  Folder folder;
  auto fuse = SilentFuse::Mount(folder.path());
  ASSERT_TRUE(fuse.ok()) << fuse.status();
  constexpr size_t kStuck = 5;
  for (size_t i = 0; i < kStuck; ++i) CloseAside(OpenFile((*fuse)->file(), O_RDONLY));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ub::UniqueFd reader(ends[0]);
  CloseAside(ub::UniqueFd(ends[1]));
  pollfd hang_up = {reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&hang_up, 1, 10000), 1);
  EXPECT_TRUE(AllClosed(kStuck));
  EXPECT_EQ(ClosesUnderWay(), kStuck);
  fuse->reset();
  EXPECT_TRUE(AllClosed());
}

TEST(CloseAside, ThreadsAreBoundedAndNothingIsForgotten) {
  if (std::string why = SilentFuse::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  Folder folder;
  auto fuse = SilentFuse::Mount(folder.path());
  ASSERT_TRUE(fuse.ok()) << fuse.status();
  for (size_t i = 0; i < kMostClosers + 10; ++i) CloseAside(OpenFile((*fuse)->file(), O_RDONLY));
  EXPECT_EQ(ClosesUnderWay(), kMostClosers + 10);
  fuse->reset();
  EXPECT_TRUE(AllClosed());
}

}  // namespace
}  // namespace ubd::testing
