// The harness itself: a helper that lies would make every other test worthless.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "tests/integration/harness/notify_socket.h"
#include "tests/integration/harness/proc_facts.h"
#include "tests/integration/harness/process.h"
#include "tests/integration/harness/temp_dir.h"

namespace ubd::testing {
namespace {

constexpr absl::Duration kSoon = absl::Seconds(10);

TEST(HarnessTest, ExitCodesAndSignalsAreToldApart) {
  EXPECT_EQ(RunCommand({.argv = {"/bin/sh", "-c", "exit 3"}}, kSoon)->code, 3);
  EXPECT_EQ(RunCommand({.argv = {"/bin/sh", "-c", "kill -TERM $$"}}, kSoon)->code, -SIGTERM);
  EXPECT_FALSE(RunCommand({.argv = {"/no/such/program"}}, kSoon).ok());
}

TEST(HarnessTest, OutputIsReadToItsEnd) {
  auto run = RunCommand({.argv = {"/bin/sh", "-c", "echo one; echo $WORD"}, .env = {"WORD=two"}}, kSoon);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->out, "one\ntwo\n");
}

TEST(HarnessTest, OtherUidHasNoRightsOfTheTest) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TempDir secret;
  std::string path = secret.Write("key", "secret");
  auto id = RunCommand({.argv = {"/bin/sh", "-c", "id -u; id -g; id -G"}, .ids = kSomebody}, kSoon);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->out, "65533\n65534\n65534\n");
  auto cat = RunCommand({.argv = {"/bin/cat", path}, .ids = kNobody, .stderr_path = "/dev/null"}, kSoon);
  ASSERT_TRUE(cat.ok());
  EXPECT_NE(cat->code, 0);
}

TEST(HarnessTest, DeadlineLeavesTheProcessRunningUntilItsObjectGoes) {
  pid_t pid;
  {
    auto sleeper = Process::Start({.argv = {"/bin/sleep", "1000"}});
    ASSERT_TRUE(sleeper.ok());
    pid = (*sleeper)->pid();
    EXPECT_TRUE(absl::IsDeadlineExceeded((*sleeper)->Wait(absl::Milliseconds(20)).status()));
    EXPECT_GT(ReadProcFacts(pid).fds, 0u);
    EXPECT_EQ(ReadProcFacts(pid).threads, 1u);
  }
  EXPECT_EQ(kill(pid, 0), -1) << "the process outlived its object";
}

TEST(HarnessTest, NotifySocketHearsMessagesAndDeath) {
  TempDir dir;
  auto notify = NotifySocket::Bind(dir / "notify");
  ASSERT_TRUE(notify.ok());
  int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, notify->path().c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(connect(sender, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_GT(send(sender, "STATUS=a=b", 10, 0), 0);
  ASSERT_GT(send(sender, "READY=1\nSTATUS=on", 17, 0), 0);
  auto ready = notify->WaitFor("READY", kSoon);
  ASSERT_TRUE(ready.ok());
  EXPECT_EQ(ready->at("STATUS"), "on");
  EXPECT_EQ(notify->history().front().at("STATUS"), "a=b");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[1]);
  EXPECT_TRUE(absl::IsUnavailable(notify->WaitFor("READY", kSoon, ends[0]).status()));
  close(ends[0]);
  close(sender);
}

}  // namespace
}  // namespace ubd::testing
