// Values that cannot work are refused before anything is built on them; defaults are what the manual says.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/unit/config/faults.h"

namespace ubd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> FaultsInPool(const std::string& keys) {
  return Faults("pool { name: \"a\" blocks: 8\n" + keys + "\n}\n");
}
std::vector<std::string> FaultsAfterPool(const std::string& text) {
  return Faults("pool { name: \"a\" blocks: 8 }\n" + text);
}

TEST(ConfigValues, DefaultsOfAPoolThatSaysTheLeast) {
  auto config = ParseConfig("pool { name: \"a\" blocks: 80 } pool { name: \"b\" blocks: 1 }", "f");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->pools.size(), 2u);
  const HostPoolConfig& pool = config->pools[0];
  EXPECT_EQ(pool.spec.kind, "host");
  EXPECT_EQ(pool.spec.block_bytes, ub::MiB(64));
  EXPECT_EQ(pool.spec.isolation, Isolation::kPerUid);
  EXPECT_EQ(pool.page_size, Bytes(0));
  EXPECT_EQ(pool.numa_node, std::nullopt);
  EXPECT_EQ(pool.reserve_blocks, 10u);
  EXPECT_EQ(config->pools[1].reserve_blocks, 1u);
  EXPECT_EQ(pool.lock_pages, Demand::kIfPossible);
  EXPECT_FALSE(pool.allow_smaller);
  EXPECT_EQ(pool.min_blocks, 1u);
  EXPECT_EQ(config->limits.default_per_uid, std::nullopt);
  EXPECT_EQ(config->limits.max_wait, absl::Hours(1));
  EXPECT_EQ(config->socket_mode, 0660u);
  EXPECT_EQ(config->metrics_listen, "");
  EXPECT_EQ(config->log_target, LogTarget::kAuto);
  EXPECT_EQ(config->log_level, LogLevel::kInfo);
}

TEST(ConfigValues, EveryKeyArrives) {
  auto config = ParseConfig(R"(
    pool { name: "a" kind: "host" block_size: "1GiB" blocks: 4 page_size: "1GiB" numa_node: 0 reserve_blocks: 2
           isolation: NONE lock_pages: REQUIRED allow_smaller: true min_blocks: 3 }
    socket { mode: "600" group: "g" }
    quota { default_per_uid: "1GiB" default_per_session: "512MiB"
            uid { user: "root" limit: "0" } uid { user: "77" limit: "4096" } }
    session { max_sessions: 5 max_per_uid: 4 max_connections_per_uid: 3 handshake_timeout: "250ms" }
    lease { max_wait: "0" max_ttl: "1h30m" ticket_ttl: "2s" max_waiters_per_uid: 6 max_leases_per_session: 7 }
    admin { group: "adm" } metrics { listen: "127.0.0.1:9401" } log { target: STDERR level: DEBUG }
    shutdown { grace: "0" }
    engine { threads: 3 cpu: 5 cpu: 0 nice: -5 spin: "10ms" client_spin: "0" register_blocks: REQUIRED depth: 1024
             chunk: "64MiB" max_queues_per_session: 2 max_files_per_session: 3 max_in_flight_per_session: 4
             file_system: "xfs" slow_device: "dm-" slow_device: "vd" }
    path { policy: DIRECT_ONLY min_direct_storage: "0" min_direct_network: "1GiB" })",
                            "f");
  ASSERT_TRUE(config.ok()) << config.status();
  const HostPoolConfig& pool = config->pools.at(0);
  EXPECT_EQ(pool.spec.block_bytes, ub::GiB(1));
  EXPECT_EQ(pool.page_size, ub::GiB(1));
  EXPECT_EQ(pool.numa_node, 0);
  EXPECT_EQ(pool.reserve_blocks, 2u);
  EXPECT_EQ(pool.spec.isolation, Isolation::kNone);
  EXPECT_EQ(pool.lock_pages, Demand::kRequired);
  EXPECT_TRUE(pool.allow_smaller);
  EXPECT_EQ(pool.min_blocks, 3u);
  EXPECT_EQ(config->socket_mode, 0600u);
  EXPECT_EQ(config->socket_group, "g");
  EXPECT_EQ(config->limits.default_per_uid, ub::GiB(1));
  EXPECT_EQ(config->limits.default_per_session, ub::MiB(512));
  EXPECT_THAT(config->limits.per_uid, ElementsAre(std::pair(Uid(0), Bytes(0)), std::pair(Uid(77), Bytes(4096))));
  EXPECT_EQ(config->max_sessions, 5u);
  EXPECT_EQ(config->max_sessions_per_uid, 4u);
  EXPECT_EQ(config->max_connections_per_uid, 3u);
  EXPECT_EQ(config->handshake_timeout, absl::Milliseconds(250));
  EXPECT_EQ(config->limits.max_wait, absl::ZeroDuration());
  EXPECT_EQ(config->limits.max_ttl, absl::Minutes(90));
  EXPECT_EQ(config->limits.ticket_ttl, absl::Seconds(2));
  EXPECT_EQ(config->limits.max_waiters_per_uid, 6u);
  EXPECT_EQ(config->limits.max_leases_per_session, 7u);
  EXPECT_EQ(config->admin_group, "adm");
  EXPECT_EQ(config->metrics_listen, "127.0.0.1:9401");
  EXPECT_EQ(config->log_target, LogTarget::kStderr);
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->shutdown_grace, absl::ZeroDuration());
  const EngineOptions& engine = config->engine;
  EXPECT_EQ(engine.threads, 3u);
  EXPECT_THAT(engine.cpus, ElementsAre(5u, 0u));
  EXPECT_EQ(engine.nice, -5);
  EXPECT_EQ(engine.spin, absl::Milliseconds(10));
  EXPECT_EQ(engine.client_spin, absl::ZeroDuration());
  EXPECT_EQ(engine.register_blocks, Demand::kRequired);
  EXPECT_EQ(engine.depth, 1024u);
  EXPECT_EQ(engine.chunk, ub::MiB(64));
  EXPECT_EQ(engine.max_queues_per_session, 2u);
  EXPECT_EQ(engine.max_files_per_session, 3u);
  EXPECT_EQ(engine.max_in_flight_per_session, 4u);
  EXPECT_THAT(engine.files.file_systems, ElementsAre("xfs"));
  EXPECT_THAT(engine.files.slow_devices, ElementsAre("dm-", "vd"));
  EXPECT_EQ(engine.policy, ub::wire::PathPolicy::kDirectOnly);
  EXPECT_EQ(engine.min_direct_storage, Bytes());
  EXPECT_EQ(engine.min_direct_network, ub::GiB(1));
}

TEST(ConfigValues, EngineKeysThatCannotBe) {
  auto faults_of = [](const std::string& section) {
    auto config = ParseConfig("pool { name: \"a\" blocks: 8 }\n" + section, "f");
    return config.ok() ? std::string("taken") : std::string(config.status().message());
  };
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"engine { threads: 0 }", "from 1 to 64"},
      {"engine { threads: 65 }", "from 1 to 64"},
      {"engine { cpu: 8192 }", "cpu 8192 does not exist"},
      {"engine { cpu: 1 cpu: 2 cpu: 1 }", "f:2:24: cpu 1 is listed twice"},
      {"engine { nice: 20 }", "from -20"},
      {"engine { nice: -21 }", "from -20"},
      {"engine { spin: \"10001us\" }", "longer than 10ms"},
      {"engine { client_spin: \"1s\" }", "longer than 10ms"},
      {"engine { depth: 0 }", "from 1 to 1024"},
      {"engine { depth: 1025 }", "from 1 to 1024"},
      {"engine { chunk: \"0\" }", "multiple of 4KiB"},
      {"engine { chunk: \"6KiB\" }", "multiple of 4KiB"},
      {"engine { chunk: \"65MiB\" }", "multiple of 4KiB"},
      {"engine { max_queues_per_session: 0 }", "from 1"},
      {"engine { max_files_per_session: 0 }", "from 1"},
      {"engine { max_in_flight_per_session: 0 }", "from 1"},
      {"engine { file_system: \"ext4\" file_system: \"a b\" }", "f:2:30: \"a b\" is no name"},
      {"engine { slow_device: \"/dev/sda\" }", "is no name"},
      {"engine { slow_device: \"sd\" slow_device: \"sd\" }", "listed twice"},
      {"engine { register_blocks: YES }", "register_blocks"},
      {"path { policy: DIRECT }", "DIRECT_ONLY"},
      {"path { min_direct_storage: \"2GiB\" }", "STAGED_ONLY"},
      {"path { min_direct_network: \"2GiB\" }", "STAGED_ONLY"},
  };
  for (const auto& [section, text] : bad) EXPECT_THAT(faults_of(section), testing::HasSubstr(text)) << section;
}

TEST(ConfigValues, AConfigWithoutAPoolIsRefused) {
  EXPECT_THAT(Faults(""), ElementsAre(StartsWith("f:1:1: no pool; add at least one")));
  EXPECT_THAT(Faults("# only a comment\n"), ElementsAre(StartsWith("f:1:1: no pool")));
  EXPECT_THAT(Faults("\npool { }"),
              ElementsAre(StartsWith("f:2:1: a pool without a name"), HasSubstr("add blocks: N")));
  EXPECT_THAT(Faults("pool { name: \"a\" blocks: 0 }"), ElementsAre(HasSubstr("at least 1")));
}

TEST(ConfigValues, TwoPoolsOfOneNameAreRefused) {
  EXPECT_THAT(Faults("pool { name: \"a\" blocks: 1 }\npool { name: \"a\" blocks: 1 }"),
              ElementsAre("f:2:8: a second pool named \"a\"; the first is at 1:8"));
  for (const char* bad : {"", "a b", "a/b", "ä", "a\\\"b"}) {
    EXPECT_THAT(Faults(absl::StrCat("pool { name: \"", bad, "\" blocks: 1 }")),
                ElementsAre(StartsWith("f:1:8: bad pool name")))
        << bad;
  }
  EXPECT_THAT(Faults(absl::StrCat("pool { name: \"", std::string(64, 'x'), "\" blocks: 1 }")), SizeIs(1));
}

TEST(ConfigValues, BlocksOfImpossibleSize) {
  for (const char* bad : {"0", "1MiB", "3MiB", "2097153"}) {
    EXPECT_THAT(FaultsInPool(absl::StrCat("block_size: \"", bad, "\"")),
                ElementsAre(HasSubstr("not a multiple of 2MiB")))
        << bad;
  }
  EXPECT_THAT(FaultsInPool("block_size: \"1026MiB\""), ElementsAre(HasSubstr("larger than 1GiB")));
  EXPECT_THAT(FaultsInPool("block_size: \"16777214TiB\""), SizeIs(1));
  EXPECT_THAT(FaultsInPool("block_size: \"2MiB\""), SizeIs(0));
  EXPECT_THAT(FaultsInPool("page_size: \"2MB\""), ElementsAre(AllOf(StartsWith("f:2:1:"), HasSubstr("\"auto\""))));
  EXPECT_THAT(FaultsInPool("page_size: \"1GiB\""), ElementsAre(HasSubstr("block_size: \"1GiB\"")));
}

TEST(ConfigValues, PoolsThatNoMachineHolds) {
  EXPECT_THAT(Faults("pool { name: \"a\" blocks: 4294967295 }"), ElementsAre(HasSubstr("no machine has that")));
  std::string many;
  for (int i = 0; i < 9; ++i) absl::StrAppend(&many, "pool { name: \"p", i, "\" blocks: 500000000 }\n");
  EXPECT_THAT(Faults(many), ElementsAre(StartsWith("f:1:1: all pools")));
  EXPECT_THAT(FaultsInPool("reserve_blocks: 0"), ElementsAre(HasSubstr("at least 1")));
  EXPECT_THAT(FaultsInPool("min_blocks: 9"), ElementsAre("f:2:1: min_blocks 9 is more than blocks, 8"));
  EXPECT_THAT(FaultsInPool("numa_node: -1"), ElementsAre(HasSubstr("leave it out for any node")));
  EXPECT_THAT(FaultsInPool("numa_node: 1024"), SizeIs(1));
}

TEST(ConfigValues, AGpuPoolIsNotTakenForAHostPool) {
  EXPECT_THAT(FaultsInPool("kind: \"cuda:0\""),
              ElementsAre(AllOf(StartsWith("f:2:1: kind \"cuda:0\" needs"), HasSubstr("\"host\""))));
  EXPECT_THAT(FaultsInPool("kind: \"hst\""), ElementsAre(HasSubstr("is unknown")));
}

TEST(ConfigValues, OthersNeverGetAccessToTheSockets) {
  for (const char* bad : {"0666", "0662", "0661", "664", "777"}) {
    EXPECT_THAT(FaultsAfterPool(absl::StrCat("socket { mode: \"", bad, "\" }")),
                ElementsAre(HasSubstr("lets every user connect")))
        << bad;
  }
  for (const char* bad : {"", "66", "0o660", "0680", "4660", "10660", "rw-rw----", "-660", "0x1b0"}) {
    EXPECT_THAT(FaultsAfterPool(absl::StrCat("socket { mode: \"", bad, "\" }")),
                ElementsAre(HasSubstr("no octal file mode")))
        << bad;
  }
  EXPECT_THAT(FaultsAfterPool("socket { mode: \"0060\" }"), ElementsAre(HasSubstr("keeps the owner out")));
}

TEST(ConfigValues, MetricsStayOnLoopback) {
  for (const char* bad : {"0.0.0.0:9401", "192.0.2.1:9401", "[::]:9401", "[::1]:9401", "9401", "127.0.0.1",
                          "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:9401x", "localhost:9401",
                          "::1:9401", "[::1:9401", "127.1:9401", "[127.0.0.1]:9401", ":9401"}) {
    EXPECT_THAT(FaultsAfterPool(absl::StrCat("metrics { listen: \"", bad, "\" }")),
                ElementsAre(StartsWith("f:2:11: listen address")))
        << bad;
  }
  EXPECT_THAT(FaultsAfterPool("metrics { listen: \"127.8.9.1:1\" }"), SizeIs(0));
}

TEST(ConfigValues, QuotasOfUsersThatDoNotExistOrTwice) {
  EXPECT_THAT(FaultsAfterPool("quota { uid { user: \"no-such-user-here\" limit: \"1GiB\" } }"),
              ElementsAre(AllOf(StartsWith("f:2:15: user \"no-such-user-here\" does not exist"), HasSubstr("number"))));
  EXPECT_THAT(
      FaultsAfterPool("quota {\n uid { user: \"root\" limit: \"1GiB\" }\n uid { user: \"0\" limit: \"2GiB\" }\n}"),
      ElementsAre(StartsWith("f:4:8: user \"0\" (0) has a quota already")));
  EXPECT_THAT(FaultsAfterPool("quota { uid { user: \"4294967295\" limit: \"1GiB\" } }"),
              ElementsAre(HasSubstr("no user number")));
  EXPECT_THAT(FaultsAfterPool("quota { uid { user: \"\" limit: \"1GiB\" } }"), SizeIs(1));
  EXPECT_THAT(FaultsAfterPool("quota { uid { user: \"7\" } }"),
              ElementsAre(StartsWith("f:2:9: a uid quota needs both")));
  EXPECT_THAT(FaultsAfterPool("quota { uid { limit: \"1GiB\" } }"), SizeIs(1));
}

TEST(ConfigValues, LimitsOfZeroThatWouldLockEverybodyOut) {
  for (const char* bad :
       {"session { max_sessions: 0 }", "session { max_per_uid: 0 }", "session { max_connections_per_uid: 0 }",
        "session { handshake_timeout: \"0\" }", "lease { max_ttl: \"0s\" }", "lease { ticket_ttl: \"0\" }",
        "lease { max_waiters_per_uid: 0 }", "lease { max_leases_per_session: 0 }"}) {
    EXPECT_THAT(FaultsAfterPool(bad), ElementsAre(HasSubstr("leave it out for its default"))) << bad;
  }
}

}  // namespace
}  // namespace ubd
