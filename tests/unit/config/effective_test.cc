// What --check-config prints is the whole configuration, and reads back to the same one.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "daemon/config/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ubd {
namespace {

using google::protobuf::util::MessageDifferencer;

void ExpectRoundTrip(const Config& config) {
  std::string text = EffectiveConfig(config);
  absl::StatusOr<Config> again = ParseConfig(text, config.path);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  MessageDifferencer differ;
  std::string difference;
  differ.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differ.Compare(ToMessage(config), ToMessage(*again))) << difference << text;
  // And what has no text of its own.
  EXPECT_EQ(config.limits.per_uid, again->limits.per_uid);
  EXPECT_EQ(config.limits.max_wait, again->limits.max_wait);
  EXPECT_EQ(config.limits.max_ttl, again->limits.max_ttl);
  EXPECT_EQ(config.handshake_timeout, again->handshake_timeout);
  EXPECT_EQ(config.pools.size(), again->pools.size());
  EXPECT_EQ(EffectiveConfig(*again), text);
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(engine_); }
  bool Coin() { return Below(2) == 1; }
  uint32_t Count() { return static_cast<uint32_t>(1 + Below(uint64_t{1} << (1 + Below(32))) % 0xffffffffu); }
  // Down to the quarters of a nanosecond that absl::Duration holds.
  absl::Duration Time() {
    return absl::Nanoseconds(1) / 4 * static_cast<int64_t>(1 + Below(uint64_t{1} << (1 + Below(60))));
  }
  Bytes Size() { return Bytes(Below(uint64_t{1} << (1 + Below(63)))); }
  std::string Word() {
    std::string word;
    for (uint64_t n = Below(12); n > 0; --n) word.push_back(static_cast<char>(' ' + 1 + Below(94)));
    return word;
  }

 private:
  std::mt19937 engine_;
};

HostPoolConfig RandomPool(int index, Random* random) {
  HostPoolConfig pool;
  pool.spec.name = absl::StrCat("p", index, "-_.");
  pool.spec.kind = "host";
  pool.spec.block_bytes = ub::MiB(2 * (1 + random->Below(512)));
  pool.spec.blocks = static_cast<uint32_t>(1 + random->Below(100000));
  pool.spec.isolation = random->Coin() ? Isolation::kNone : Isolation::kPerUid;
  const Bytes pages[] = {Bytes(0), ub::KiB(4), ub::MiB(2), ub::GiB(1)};
  pool.page_size = pages[random->Below(pool.spec.block_bytes == ub::GiB(1) ? 4 : 3)];
  if (random->Coin()) pool.numa_node = static_cast<int>(random->Below(1024));
  pool.reserve_blocks = static_cast<uint32_t>(1 + random->Below(100));
  pool.lock_pages = static_cast<Demand>(random->Below(3));
  pool.allow_smaller = random->Coin();
  pool.min_blocks = static_cast<uint32_t>(1 + random->Below(pool.spec.blocks));
  return pool;
}

EngineOptions RandomEngine(Random* random) {
  EngineOptions engine;
  engine.threads = static_cast<uint32_t>(1 + random->Below(64));
  for (uint32_t n = 0; n < random->Below(4); ++n) engine.cpus.push_back(n * 1000 + 7);
  engine.nice = static_cast<int>(random->Below(40)) - 20;
  engine.spin = absl::Nanoseconds(static_cast<int64_t>(random->Below(10000001)));
  engine.client_spin = absl::ZeroDuration();
  engine.register_blocks = static_cast<Demand>(random->Below(3));
  engine.depth = static_cast<uint32_t>(1 + random->Below(1024));
  engine.chunk = ub::KiB(4) * (1 + random->Below(16384));
  engine.max_queues_per_session = static_cast<uint32_t>(1 + random->Below(1 << 20));
  engine.max_files_per_session = static_cast<uint32_t>(1 + random->Below(1 << 20));
  engine.max_in_flight_per_session = static_cast<uint32_t>(1 + random->Below(1 << 20));
  if (random->Coin()) engine.files.file_systems = {"bcachefs", "fuse.a-b_c"};
  if (random->Coin()) engine.files.slow_devices = {"vd"};
  engine.policy = static_cast<ub::wire::PathPolicy>(1 + random->Below(3));
  engine.min_direct_storage = Bytes(random->Below((1 << 30) + 1));
  engine.min_direct_network = Bytes(random->Below((1 << 30) + 1));
  return engine;
}

Config RandomConfig(uint32_t seed) {
  Random random(seed);
  Config config;
  config.path = "random";
  for (uint64_t n = 1 + random.Below(4); n > 0; --n) config.pools.push_back(RandomPool(static_cast<int>(n), &random));
  if (random.Coin()) config.limits.default_per_uid = random.Size();
  if (random.Coin()) config.limits.default_per_session = random.Size();
  for (uint64_t n = random.Below(4); n > 0; --n) config.limits.per_uid[Uid(random.Count() - 1)] = random.Size();
  config.limits.max_wait = random.Coin() ? absl::ZeroDuration() : random.Time();
  if (random.Coin()) config.limits.max_ttl = random.Time();
  config.limits.ticket_ttl = random.Time();
  config.limits.max_waiters_per_uid = random.Count();
  config.limits.max_leases_per_session = random.Count();
  const uint32_t modes[] = {0600, 0660, 0640, 0700, 0770};
  config.socket_mode = modes[random.Below(5)];
  config.socket_group = random.Word();
  config.admin_group = random.Word();
  config.max_sessions = random.Count();
  config.max_sessions_per_uid = random.Count();
  config.max_connections_per_uid = random.Count();
  config.handshake_timeout = random.Time();
  if (random.Coin()) config.metrics_listen = absl::StrCat("127.0.0.", random.Below(256), ":", 1 + random.Below(65535));
  config.log_target = static_cast<LogTarget>(random.Below(3));
  config.log_level = static_cast<LogLevel>(random.Below(4));
  config.shutdown_grace = random.Time();
  config.engine = RandomEngine(&random);
  return config;
}

TEST(EffectiveConfig, AnyConfigReadsBackTheSame) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    ExpectRoundTrip(RandomConfig(seed));
    if (testing::Test::HasFailure()) return;
  }
}

// A section's keys, all of them, are in the text: with a value or as a comment.
void ExpectAllKeys(const google::protobuf::Descriptor* section, const std::string& text) {
  for (int i = 0; i < section->field_count(); ++i) {
    EXPECT_TRUE(absl::StrContains(text, section->field(i)->name())) << section->field(i)->full_name();
  }
}

TEST(EffectiveConfig, NoKeyIsLeftOut) {
  auto config = ParseConfig("pool { name: \"a\" blocks: 8 }", "f");
  ASSERT_TRUE(config.ok());
  ExpectRoundTrip(*config);
  std::string text = EffectiveConfig(*config);
  ub::v1::Config schema;
  ExpectAllKeys(schema.GetDescriptor(), text);
  for (int i = 0; i < schema.GetDescriptor()->field_count(); ++i)
    ExpectAllKeys(schema.GetDescriptor()->field(i)->message_type(), text);
  EXPECT_THAT(text, testing::HasSubstr("reserve_blocks: 1\n"));
  EXPECT_THAT(text, testing::HasSubstr("# default_per_uid: not set\n"));
}

// The text of a config file, mutated: refused or taken, never worse; what is taken reads back.
TEST(EffectiveConfig, MutatedTextNeverCrashes) {
  std::mt19937 engine(7);
  auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine); };
  const std::string base = EffectiveConfig(RandomConfig(3));
  size_t taken = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string text = base;
    for (size_t n = 1 + below(4); n > 0; --n) {
      size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, 1 + below(20));
          break;
        case 2:
          text.insert(at, base.substr(below(base.size()), 1 + below(30)));
          break;
        default:
          text.insert(at, 1, "{}<>[]:\"'\\,;#-0\n"[below(16)]);
      }
    }
    absl::StatusOr<Config> config = ParseConfig(text, "random");
    config.ok() ? ++taken : ++refused;
    if (config.ok()) {
      ExpectRoundTrip(*config);
    } else {
      EXPECT_TRUE(absl::StartsWith(std::string(config.status().message()), "random:")) << config.status();
    }
  }
  EXPECT_GT(taken, 10u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace ubd
