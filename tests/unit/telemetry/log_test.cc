// The log says what it was told, in one line per record, and nothing that a client sends can forge another.
#include "daemon/telemetry/log.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/telemetry/log_record.h"
#include "daemon/telemetry/log_sinks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/telemetry/captured_log.h"

namespace ubd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr char kTime[] = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z ";

TEST(Log, StderrLinesHaveTimeLevelTextAndFields) {
  CapturedLog log;
  InitLog(LogTarget::kStderr, LogLevel::kDebug);
  LogInfo("lease granted", {{"lease", "7"}, {"uid", "0"}, {"empty", ""}, {"name", "two words"}});
  Log(LogLevel::kDebug, "d");
  LogWarn("w");
  LogError("e");
  LogAudit("granted", {{"lease", "7"}});
  EXPECT_THAT(log.Lines(),
              ElementsAre(MatchesRegex(absl::StrCat(kTime, "info lease granted lease=7 uid=0 name=\"two words\"")),
                          MatchesRegex(absl::StrCat(kTime, "debug d")), MatchesRegex(absl::StrCat(kTime, "warn w")),
                          MatchesRegex(absl::StrCat(kTime, "error e")),
                          MatchesRegex(absl::StrCat(kTime, "audit granted lease=7"))));
}

TEST(Log, ALevelCutsTheLogButNeverTheAudit) {
  CapturedLog log;
  InitLog(LogTarget::kStderr, LogLevel::kError);
  LogInfo("no");
  LogAudit("granted", {});
  SetLogLevel(LogLevel::kWarn);
  LogWarn("yes");
  LogInfo("no");
  EXPECT_THAT(log.Lines(), ElementsAre(testing::HasSubstr("audit granted"), testing::HasSubstr("warn yes")));
}

TEST(Log, AClientsNameForgesNeitherLinesNorFields) {
  EXPECT_EQ(TextWithFields("t", {{"name", "x uid=0"}}), "t name=\"x uid=0\"");
  EXPECT_EQ(TextWithFields("t", {{"name", "x\n2026 info granted"}}), "t name=\"x?2026 info granted\"");
  EXPECT_EQ(TextWithFields("t", {{"name", "a\"b\\c"}}), "t name=\"a\\\"b\\\\c\"");
  EXPECT_EQ(TextWithFields("t\x1b[2J", {{"name",
                                         "\x7f\xc2\x9b"
                                         "1mä"}}),
            "t?[2J name=??1mä");
  EXPECT_THAT(JournalEntry(6, "t", {{{"pid", "1\nUBD_UID=0"}, {"a b", "c"}}, true}),
              ElementsAre("MESSAGE=t pid=\"1?UBD_UID=0\" a b=c", "PRIORITY=6", "SYSLOG_IDENTIFIER=ubd", "UBD_AUDIT=1",
                          "UBD_EVENT=t", "UBD_PID=1?UBD_UID=0", "UBD_A_B=c"));
}

TEST(Log, ThreadsKeepTheirFieldsApart) {
  CapturedLog log;
  InitLog(LogTarget::kStderr, LogLevel::kInfo);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) LogInfo(absl::StrCat("t", t), {{"thread", absl::StrCat(t)}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> lines = log.Lines();
  EXPECT_EQ(lines.size(), 2000u);
  for (const std::string& line : lines) {
    EXPECT_EQ(line.substr(line.find(" info t") + 7, 1), line.substr(line.find("thread=") + 7)) << line;
  }
}

TEST(Log, AutoIsStderrUnlessTheManagerConnectedItToTheJournal) {
  unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(StderrIsTheJournal());
  setenv("JOURNAL_STREAM", "1:2", 1);
  EXPECT_FALSE(StderrIsTheJournal());
  struct stat info;
  ASSERT_EQ(fstat(STDERR_FILENO, &info), 0);
  setenv("JOURNAL_STREAM", absl::StrCat(info.st_dev, ":", info.st_ino).c_str(), 1);
  EXPECT_TRUE(StderrIsTheJournal());
  unsetenv("JOURNAL_STREAM");
}

// A mount namespace of its own with an empty /run, so that no real journal is touched. False: not permitted here.
bool EnterEmptyRun() {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("run", "/run", "tmpfs", 0, nullptr) == 0;
}

// The fields of one native journal message ("NAME=value" lines).
std::vector<std::string> ReceiveEntry(int fd) {
  char buffer[65536];
  ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
  std::string text(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (!text.empty()) text.pop_back();
  return absl::StrSplit(text, '\n');
}

int BindJournal() {
  mkdir("/run/systemd", 0755);
  mkdir("/run/systemd/journal", 0755);
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "/run/systemd/journal/socket");
  return bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ? fd : -1;
}

// Runs `body` in a child within such a namespace; 77 from it is a skip.
void InEmptyRun(void (*body)()) {
  pid_t child = fork();
  if (child == 0) {
    if (!EnterEmptyRun()) _exit(77);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "a mount namespace needs root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Log, JournalGetsRealFields) {
  InEmptyRun([] {
    int journal = BindJournal();
    ASSERT_GE(journal, 0);
    InitLog(LogTarget::kJournald, LogLevel::kInfo);
    LogAudit("granted", {{"lease", "7"}, {"session", "3"}});
    EXPECT_THAT(ReceiveEntry(journal),
                ElementsAre("MESSAGE=granted lease=7 session=3", "PRIORITY=5", "SYSLOG_IDENTIFIER=ubd", "UBD_AUDIT=1",
                            "UBD_EVENT=granted", "UBD_LEASE=7", "UBD_SESSION=3"));
    LogWarn("careful");
    EXPECT_THAT(ReceiveEntry(journal), ElementsAre("MESSAGE=careful", "PRIORITY=4", "SYSLOG_IDENTIFIER=ubd"));
    // A journal that died does not swallow the log.
    close(journal);
    CapturedLog log;
    LogError("still told");
    EXPECT_THAT(log.Lines(), Contains(testing::HasSubstr("error still told")));
  });
}

TEST(Log, AJournalThatIsNotThereIsSaidAndReplaced) {
  InEmptyRun([] {
    CapturedLog log;
    InitLog(LogTarget::kJournald, LogLevel::kInfo);
    LogInfo("hello");
    EXPECT_THAT(log.Lines(),
                ElementsAre(testing::HasSubstr("no journal on this machine"), testing::HasSubstr("info hello")));
  });
}

}  // namespace
}  // namespace ubd
