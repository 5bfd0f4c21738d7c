// Loading from the file system, the shipped files, and what a reload may change.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "daemon/config/embedded.h"
#include "daemon/config/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGood[] = "pool { name: \"a\" blocks: 8 }\n";

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/ubd-config-XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
  }
  void TearDown() override {
    unlink(path().c_str());
    rmdir(dir_.c_str());
  }
  std::string path() const { return dir_ + "/f.textproto"; }
  void Write(const std::string& text) { std::ofstream(path()) << text; }
  std::string dir_;
};

TEST_F(ConfigFile, IsReadWhole) {
  Write(kGood);
  auto config = LoadConfig(path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->path, path());
  Write("pool { sise: 3 }\n");
  EXPECT_THAT(std::string(LoadConfig(path()).status().message()), testing::StartsWith(path() + ":1:8: unknown key"));
}

TEST_F(ConfigFile, MissingEmptyDirectoryFifoOrHuge) {
  EXPECT_EQ(LoadConfig(path()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadConfig(path()).status().message()), HasSubstr(path()));
  EXPECT_EQ(LoadConfig("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(LoadConfig(dir_).status().message()), HasSubstr("is a directory"));
  EXPECT_EQ(ub::ReasonOf(LoadConfig(dir_).status()), ub::Reason::kBadConfig);
  Write("");
  EXPECT_THAT(std::string(LoadConfig(path()).status().message()), HasSubstr(":1:1: no pool"));
  Write(std::string(10 << 20, 'x'));
  EXPECT_THAT(std::string(LoadConfig(path()).status().message()), HasSubstr("larger than 1MiB"));
  unlink(path().c_str());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(std::string(LoadConfig(path()).status().message()), HasSubstr("not a regular file"));
}

TEST_F(ConfigFile, UnreadableForAnOrdinaryUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become two users";
  Write(kGood);
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(path().c_str(), 0600), 0);
  pid_t child = fork();
  if (child == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    absl::Status status = LoadConfig(path()).status();
    _exit(status.code() == absl::StatusCode::kPermissionDenied &&
                  absl::StrContains(std::string(status.message()), path())
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ShippedConfig, EveryFileIsValid) {
  for (const char* name : {"embedded", "gpu-node", "ubd"}) {
    auto config = LoadConfig(absl::StrCat(UBD_CONFIG_DIR "/", name, ".textproto"));
    EXPECT_TRUE(config.ok()) << config.status();
  }
}

TEST(ShippedConfig, EmbeddedIsTheFileAndEightBlocksOf64MiB) {
  std::ifstream file(UBD_CONFIG_DIR "/embedded.textproto");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), EmbeddedConfigText());
  auto config = ParseConfig(std::string(EmbeddedConfigText()), std::string(kEmbeddedConfigName));
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->pools.size(), 1u);
  EXPECT_EQ(config->pools[0].spec.blocks, 8u);
  EXPECT_EQ(config->pools[0].spec.block_bytes, ub::MiB(64));
  EXPECT_EQ(config->pools[0].spec.kind, "host");
  EXPECT_NE(config->pools[0].lock_pages, Demand::kRequired) << "an ordinary user's memlock limit would forbid it";
}

// ubd.textproto explains every key, and the values it shows are the defaults.
TEST(ShippedConfig, ReferenceFileShowsEveryKeyWithItsDefault) {
  auto shown = LoadConfig(UBD_CONFIG_DIR "/ubd.textproto");
  ASSERT_TRUE(shown.ok()) << shown.status();
  auto defaults = ParseConfig("pool { name: \"host\" blocks: 8 }", "f");
  EXPECT_EQ(EffectiveConfig(*shown), EffectiveConfig(*defaults));
  std::ifstream file(UBD_CONFIG_DIR "/ubd.textproto");
  std::stringstream text;
  text << file.rdbuf();
  const auto* root = ub::v1::Config::descriptor();
  for (int i = 0; i < root->field_count(); ++i) {
    const auto* section = root->field(i)->message_type();
    for (int k = 0; k < section->field_count(); ++k) {
      std::string key = section->field(k)->name();
      EXPECT_TRUE(absl::StrContains(text.str(), key + ":") || absl::StrContains(text.str(), key + " {"))
          << root->field(i)->name() << "." << key;
    }
  }
}

TEST(Reload, ChangesWhatCanChangeAndNamesWhatCannot) {
  Config running = *ParseConfig(kGood, "f");
  Config wanted = *ParseConfig(
      "pool { name: \"a\" blocks: 9 }\npool { name: \"b\" blocks: 1 }\nquota { default_per_uid: \"1GiB\" uid { user: "
      "\"7\" limit: \"1GiB\" } }\n"
      "lease { max_wait: \"1s\" }\nlog { level: DEBUG target: STDERR }\nsession { handshake_timeout: \"9s\" "
      "max_sessions: 3 }\n"
      "socket { mode: \"0600\" }\nmetrics { listen: \"127.0.0.1:9\" }\nshutdown { grace: \"1s\" }\nadmin { group: "
      "\"g\" }\n"
      "engine { depth: 64 slow_device: \"vd\" }\npath { policy: STAGED_ONLY min_direct_storage: \"1MiB\" }\n",
      "f");
  ReloadPlan plan = PlanReload(running, wanted);
  EXPECT_THAT(plan.changed, ElementsAre("quota.default_per_uid", "quota.uid", "session.handshake_timeout",
                                        "lease.max_wait", "log.level", "path.policy", "path.min_direct_storage"));
  EXPECT_THAT(plan.needs_restart,
              ElementsAre("pool \"a\".blocks", "pool \"b\" (new)", "socket.mode", "session.max_sessions", "admin.group",
                          "metrics.listen", "log.target", "shutdown.grace", "engine.depth", "engine.slow_device"));
  EXPECT_EQ(plan.merged.pools.size(), 1u);
  EXPECT_EQ(plan.merged.limits.default_per_uid, ub::GiB(1));
  EXPECT_EQ(plan.merged.limits.max_wait, absl::Seconds(1));
  EXPECT_EQ(plan.merged.log_level, LogLevel::kDebug);
  EXPECT_EQ(plan.merged.handshake_timeout, absl::Seconds(9));
  EXPECT_EQ(plan.merged.engine.policy, ub::wire::PathPolicy::kStagedOnly);
  EXPECT_EQ(plan.merged.engine.min_direct_storage, ub::MiB(1));
  EXPECT_EQ(plan.merged.engine.depth, 128u);
  EXPECT_EQ(plan.merged.log_target, LogTarget::kAuto);
  EXPECT_EQ(plan.merged.socket_mode, 0660u);
  EXPECT_EQ(plan.merged.metrics_listen, "");
  // The merged one, asked again for the same, has only the rest left.
  ReloadPlan again = PlanReload(plan.merged, wanted);
  EXPECT_THAT(again.changed, IsEmpty());
  EXPECT_EQ(again.needs_restart, plan.needs_restart);
}

TEST(Reload, TheSameFileChangesNothing) {
  Config config = *ParseConfig("pool { name: \"a\" blocks: 8 }\npool { name: \"b\" blocks: 8 }\n", "f");
  ReloadPlan same = PlanReload(config, config);
  EXPECT_THAT(same.changed, IsEmpty());
  EXPECT_THAT(same.needs_restart, IsEmpty());
  Config swapped = *ParseConfig("pool { name: \"b\" blocks: 8 }\npool { name: \"a\" blocks: 8 }\n", "f");
  EXPECT_THAT(PlanReload(config, swapped).needs_restart, ElementsAre("pool (order)"));
  EXPECT_THAT(PlanReload(config, *ParseConfig(kGood, "f")).needs_restart, ElementsAre("pool \"b\" (removed)"));
}

}  // namespace
}  // namespace ubd
