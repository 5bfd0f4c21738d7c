// The command line, run in this process against no daemon: what the parser accepts, and which exit code and document
// come out.
#include "client/ubctl/command_line.h"

#include <gtest/gtest.h>

#include "client/ubctl/commands.h"
#include "proto/wire/size_text.h"
#include "tests/unit/ubctl/run_ubctl.h"

namespace ub::ctl {
namespace {

TEST(CommandLine, BadSizesAreUsageErrors) {
  for (const char* size : {"1G", "1GB", "1Gi", "1g", "1 GiB", "1.5G", "1e9", "0x10", "-1", "", "1GiBB", "0", "64MB",
                           "99999999999999999999"}) {
    Outcome outcome = RunUbctl({"lease", "hold", size});
    EXPECT_EQ(outcome.code, 2) << size;
    EXPECT_EQ(outcome.out, "") << size;
    EXPECT_NE(outcome.err, "") << size;
  }
}

TEST(CommandLine, SizesMeanTheSameAsInTheConfigFile) {
  EXPECT_EQ(RunUbctl({"lease", "hold", "1GiB"}).code, 3) << "accepted, and no daemon there";
  EXPECT_EQ(RunUbctl({"lease", "hold", "4096"}).code, 3);
  EXPECT_NE(RunUbctl({"lease", "hold", "64MB"}).err.find("write MiB"), std::string::npos) << "the config's own hint";
}

TEST(CommandLine, GlobalOptionsAreTakenBeforeAndAfterTheCommand) {
  for (auto words : std::vector<std::vector<std::string>>{
           {"--json", "pools"}, {"pools", "--json"}, {"lease", "hold", "--json", "2MiB"}}) {
    Outcome outcome = RunUbctl(words);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(
        outcome.out.rfind("{\n  \"error\": {\n    \"code\": \"UNAVAILABLE\",\n    \"reason\": \"NOT_RUNNING\"", 0), 0U)
        << outcome.out;
  }
}

TEST(CommandLine, EveryCommandSaysNotRunningWith3) {
  for (auto words : std::vector<std::vector<std::string>>{{"status"},
                                                          {"pools"},
                                                          {"blocks"},
                                                          {"leases"},
                                                          {"sessions"},
                                                          {"watch"},
                                                          {"top"},
                                                          {"lease", "revoke", "1"},
                                                          {"drain"},
                                                          {"drain", "--wait"},
                                                          {"bench", "acquire"}}) {
    Outcome outcome = RunUbctl(words);
    EXPECT_EQ(outcome.code, 3) << words.front();
    EXPECT_NE(outcome.err.find("NOT_RUNNING"), std::string::npos) << words.front();
    EXPECT_EQ(outcome.out, "") << words.front();
  }
}

TEST(CommandLine, VersionWithoutADaemonIsNoError) {
  Outcome outcome = RunUbctl({"version", "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("\"daemon\": null"), std::string::npos);
}

TEST(CommandLine, UsageErrorsOweADocumentToo) {
  for (auto words : std::vector<std::vector<std::string>>{
           {"--json"}, {"--json", "nosuch"}, {"pools", "--json", "stray"}, {"lease", "--json"}}) {
    Outcome outcome = RunUbctl(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.out.find("\"reason\": \"USAGE\""), std::string::npos) << outcome.out;
  }
  EXPECT_NE(RunUbctl({"nosuch"}).err.find("no command \"nosuch\""), std::string::npos);
}

TEST(CommandLine, TimeoutThatIsNoneIsRefused) {
  for (const char* timeout : {"0", "-1s", "inf", "5", "5 s", ""})
    EXPECT_EQ(RunUbctl({"--timeout", timeout, "status"}).code, 2) << timeout;
}

TEST(CommandLine, HelpOfOneCommandIsNotTheHelpOfAll) {
  Outcome outcome = RunUbctl({"lease", "hold", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("--ttl"), std::string::npos) << outcome.out;
  EXPECT_EQ(RunUbctl({"--help"}).out.find("demo-consumer"), std::string::npos) << "hidden";
}

TEST(CommandLine, CompletionKnowsEveryCommand) {
  std::string help = RunUbctl({"--help"}).out;
  std::string script = RunUbctl({"completion", "bash"}).out;
  for (const char* command : {"status", "version", "pools", "blocks", "leases", "sessions", "watch", "top", "lease",
                              "drain", "bench", "demo", "completion"}) {
    EXPECT_NE(help.find("  " + std::string(command) + " "), std::string::npos) << command;
    EXPECT_NE(script.find(command), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace ub::ctl
