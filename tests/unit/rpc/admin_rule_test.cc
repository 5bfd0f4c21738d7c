#include "daemon/rpc/admin_rule.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr char kStatus[] =
    "Name:\tGroups: 0 \nUmask:\t0022\nState:\tS (sleeping)\nPid:\t42\nUid:\t1000\t1001\t1002\t1003\n"
    "Gid:\t100\t100\t100\t100\nGroups:\t24 27 4711 \n";

TEST(StatusHasGroup, FindsWholeNumbersOnly) {
  EXPECT_TRUE(StatusHasGroup(kStatus, Uid(1001), Gid(4711)));
  EXPECT_TRUE(StatusHasGroup(kStatus, Uid(1001), Gid(24)));
  EXPECT_FALSE(StatusHasGroup(kStatus, Uid(1001), Gid(471)));
  EXPECT_FALSE(StatusHasGroup(kStatus, Uid(1001), Gid(2)));
}

TEST(StatusHasGroup, ProcessNamedLikeTheLineDoesNotCount) { EXPECT_FALSE(StatusHasGroup(kStatus, Uid(1001), Gid(0))); }

TEST(StatusHasGroup, PidThatPassedToAnotherUserDoesNotCount) {
  EXPECT_FALSE(StatusHasGroup(kStatus, Uid(1000), Gid(4711)));
  EXPECT_FALSE(StatusHasGroup(kStatus, Uid(5), Gid(4711)));
  EXPECT_FALSE(StatusHasGroup("", Uid(0), Gid(0)));
}

TEST(FindGroup, ByNameAndNumberAndUnknown) {
  EXPECT_EQ(FindGroup("").value(), std::nullopt);
  EXPECT_EQ(FindGroup("root").value(), Gid(0));
  EXPECT_EQ(FindGroup("4711").value(), Gid(4711));
  absl::Status unknown = FindGroup("no-such-group-here").status();
  EXPECT_EQ(ub::ReasonOf(unknown), ub::Reason::kBadConfig);
  EXPECT_NE(std::string(unknown.message()).find("no-such-group-here"), std::string::npos);
}

TEST(AdminRule, RootAndTheDaemonsOwnUserAlways) {
  AdminRule rule(std::nullopt);
  EXPECT_TRUE(rule(Uid(0), Gid(0), 1));
  EXPECT_TRUE(rule(Uid(geteuid()), Gid(12345), 1));
  EXPECT_FALSE(rule(Uid(12345), Gid(0), getpid()));
}

TEST(AdminRule, PrimaryGroupOfTheConnectionCounts) {
  AdminRule rule(Gid(4711));
  EXPECT_TRUE(rule(Uid(12345), Gid(4711), 0));
  EXPECT_FALSE(rule(Uid(12345), Gid(4712), 0));
}

// A child of another uid, with or without the group among its supplementary ones.
bool ChildIsAdmin(const AdminRule& rule, gid_t supplementary) {
  int started[2];
  int go[2];
  EXPECT_EQ(pipe(started), 0);
  EXPECT_EQ(pipe(go), 0);
  pid_t child = fork();
  if (child == 0) {
    close(go[1]);
    if (setgroups(1, &supplementary) != 0 || setresgid(12345, 12345, 12345) != 0 ||
        setresuid(12345, 12345, 12345) != 0) {
      _exit(1);
    }
    char byte = 'x';
    static_cast<void>(!write(started[1], &byte, 1));
    static_cast<void>(!read(go[0], &byte, 1));
    _exit(0);
  }
  close(started[1]);
  char byte = 0;
  EXPECT_EQ(read(started[0], &byte, 1), 1) << "the child could not change its user";
  bool admin = rule(Uid(12345), Gid(12345), child);
  EXPECT_FALSE(rule(Uid(12346), Gid(12345), child));
  close(go[1]);
  close(go[0]);
  close(started[0]);
  waitpid(child, nullptr, 0);
  return admin;
}

TEST(AdminRule, SupplementaryGroupOfALivingProcessCounts) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  AdminRule rule(Gid(4711));
  EXPECT_TRUE(ChildIsAdmin(rule, 4711));
  EXPECT_FALSE(ChildIsAdmin(rule, 4712));
}

}  // namespace
}  // namespace ubd
