// A daemon of an ordinary user, and a file that it may not open itself: the client's description has to do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "daemon/engine/file_target.h"
#include "proto/wire/error.h"
#include "tests/unit/engine/file_testing.h"

namespace ubd::testing {
namespace {

using ub::wire::PathReason;

#define CHECK_THAT(condition) \
  if (!(condition)) return std::string("not so: " #condition)

class SharedDescription : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    SKIP_WITHOUT_DIRECT(folder_);
    secret_ = folder_.Write("secret", Pattern(4096), 0600);
    public_ = folder_.Write("public", Pattern(4096), 0644);
  }
  // Opens as root, then looks at it as nobody.
  std::string AsNobody(const std::string& path, int flags,
                       const std::function<std::string(absl::StatusOr<std::shared_ptr<FileTarget>>, int)>& check) {
    ub::UniqueFd fd = OpenFile(path, flags);
    return InChild(true, [&] {
      ub::UniqueFd client(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
      return check(FileTarget::Open(std::move(fd), 0, FileRules()), client.get());
    });
  }
  Folder folder_;
  std::string secret_, public_;
};

TEST_F(SharedDescription, IsStagedWithoutODirect) {
  EXPECT_EQ(AsNobody(secret_, O_RDWR,
                     [](auto target, int client) -> std::string {
                       CHECK_THAT(target.ok());
                       const FileFacts& facts = (*target)->facts();
                       CHECK_THAT(facts.trusted && facts.readable && facts.writable);
                       CHECK_THAT(!facts.own_description && !facts.direct);
                       CHECK_THAT(facts.why_not == PathReason::kDirectRefused);
                       CHECK_THAT((*target)->direct_fd() == -1 && (*target)->staged_fd() >= 0);
                       CHECK_THAT(!(*target)->FlagsChanged());
                       CHECK_THAT(::fcntl(client, F_SETFL, O_APPEND) == 0);
                       CHECK_THAT((*target)->FlagsChanged());
                       CHECK_THAT(::fcntl(client, F_SETFL, 0) == 0);
                       CHECK_THAT(!(*target)->FlagsChanged());
                       return "";
                     }),
            "");
}

TEST_F(SharedDescription, IsDirectWithODirect) {
  EXPECT_EQ(AsNobody(secret_, O_RDONLY | O_DIRECT,
                     [](auto target, int client) -> std::string {
                       CHECK_THAT(target.ok());
                       const FileFacts& facts = (*target)->facts();
                       CHECK_THAT(facts.trusted && facts.readable && !facts.writable && facts.direct);
                       CHECK_THAT(!facts.own_description && facts.memory_align > 1 && facts.offset_align > 1);
                       CHECK_THAT((*target)->direct_fd() >= 0 && (*target)->staged_fd() == -1);
                       Memory4K memory(4096);
                       CHECK_THAT(::pread((*target)->direct_fd(), memory.data(), 4096, 0) == 4096);
                       CHECK_THAT(std::string(memory.data(), 4096) == Pattern(4096));
                       CHECK_THAT(::fcntl(client, F_SETFL, 0) == 0);
                       CHECK_THAT((*target)->FlagsChanged());
                       return "";
                     }),
            "");
}

TEST_F(SharedDescription, ThatAppendsIsRefused) {
  EXPECT_EQ(AsNobody(secret_, O_WRONLY | O_APPEND,
                     [](auto target, int) -> std::string {
                       CHECK_THAT(!target.ok());
                       CHECK_THAT(ub::ReasonOf(target.status()) == ub::Reason::kBadFile);
                       CHECK_THAT(target.status().message().find("O_APPEND") != absl::string_view::npos);
                       return "";
                     }),
            "");
}

TEST_F(SharedDescription, IsNotNeededWhereTheDaemonMayOpenTheFile) {
  EXPECT_EQ(AsNobody(public_, O_RDONLY,
                     [](auto target, int client) -> std::string {
                       CHECK_THAT(target.ok());
                       CHECK_THAT((*target)->facts().own_description && (*target)->facts().direct);
                       CHECK_THAT(::fcntl(client, F_SETFL, O_DIRECT) == 0);
                       CHECK_THAT(!(*target)->FlagsChanged());
                       return "";
                     }),
            "");
}

// The right to read is not the right to write: the daemon's own may not exceed, nor fall short of, what was given.
TEST_F(SharedDescription, ServesWhereTheDaemonMayOnlyRead) {
  EXPECT_EQ(AsNobody(public_, O_RDWR,
                     [](auto target, int) -> std::string {
                       CHECK_THAT(target.ok());
                       CHECK_THAT(!(*target)->facts().own_description && (*target)->facts().writable);
                       return "";
                     }),
            "");
}

}  // namespace
}  // namespace ubd::testing
