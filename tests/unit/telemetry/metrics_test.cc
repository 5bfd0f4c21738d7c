// A real scrape over HTTP gives figures that Prometheus takes; a port that cannot be had is a typed error.
#include "daemon/telemetry/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/telemetry/listen_address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"
#include "tests/unit/telemetry/prometheus_text.h"

namespace ubd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A port that was free a moment ago.
std::string FreeAddress() {
  ub::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

std::string Get(const std::string& address, const std::string& path) {
  auto parsed = ParseListenAddress(address);
  ub::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&parsed->socket_address), sizeof(parsed->socket_address)) != 0)
    return "";
  std::string request = absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(write(fd.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = read(fd.get(), buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<size_t>(got));
  return answer;
}

// The body of a plain answer.
std::string Scrape(const std::string& address) {
  std::string answer = Get(address, "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

MetricsSources SomeSources() {
  MetricsSources sources;
  sources.pools = [] {
    PoolListing pool;
    pool.spec = {"host", "host", ub::MiB(64), 8};
    pool.free = 3, pool.leased = 2, pool.cached = 1, pool.draining = 1, pool.recycling = 1, pool.retired = 4;
    PoolListing odd = pool;
    odd.spec.name = "b.2";
    return std::vector<PoolListing>{pool, odd};
  };
  sources.facts = [] {
    PoolFacts facts;
    facts.spec.name = "host";
    facts.page_size = ub::MiB(2);
    facts.reserve = 1;
    return std::vector<PoolFacts>{facts};
  };
  sources.totals = [] {
    return BrokerTotals{.sessions = 5, .leases = 6, .waiters = 7, .reclaimed_sessions = 8, .reclaimed_leases = 9};
  };
  sources.take_backs = [] { return uint64_t{12}; };
  sources.paths = [] {
    PathStatus paths;
    paths.policy = ub::wire::PathPolicy::kStagedOnly;
    paths.registered = true;
    paths.counts = {{ub::wire::Path::kDirect, ub::wire::PathReason::kNone, ub::wire::MemoryKind::kFile,
                     ub::wire::MemoryKind::kHost, 5, 500, 1},
                    {ub::wire::Path::kStaged, ub::wire::PathReason::kForced, ub::wire::MemoryKind::kHost,
                     ub::wire::MemoryKind::kFile, 6, 600, 0}};
    return paths;
  };
  sources.queues = [] {
    std::vector<QueueListing> queues(3);
    queues[0].state = queues[1].state = "open";
    queues[0].in_flight = 3, queues[1].in_flight = 4, queues[1].waiting = 9;
    queues[2].state = "broken: more submitted than there are slots";
    return queues;
  };
  return sources;
}

WatchedEvent Of(EventKind kind) { return WatchedEvent{.event = Event{kind}}; }

TEST(Metrics, AScrapeHoldsEveryFigureInValidText) {
  std::string address = FreeAddress();
  auto metrics = Metrics::Create(address, SomeSources());
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  WatchedEvent granted = Of(EventKind::kGranted);
  granted.event.waited = absl::Milliseconds(50);
  for (int i = 0; i < 3; ++i) (*metrics)->OnEvent(granted);
  (*metrics)->OnEvent(Of(EventKind::kRecycled));
  (*metrics)->OnEvent(Of(EventKind::kTampered));
  (*metrics)->ObserveRpc("Acquire", "OK", absl::Microseconds(300));
  (*metrics)->ObserveRpc("Acquire", "OK", absl::Microseconds(70));
  (*metrics)->ObserveRpc("Release", "NOT_FOUND", absl::Seconds(2));
  PrometheusText text = ParsePrometheus(Scrape(address));
  EXPECT_THAT(text.problems, IsEmpty());
  auto& samples = text.samples;
  EXPECT_EQ(samples.at("ubd_pool_blocks{pool=\"host\",state=\"free\"}"), 3);
  EXPECT_EQ(samples.at("ubd_pool_blocks{pool=\"host\",state=\"leased\"}"), 2);
  EXPECT_EQ(samples.at("ubd_pool_blocks{pool=\"b.2\",state=\"recycling\"}"), 1);
  EXPECT_EQ(samples.at("ubd_blocks_retired{pool=\"host\"}"), 4);
  EXPECT_EQ(samples.at("ubd_pool_block_bytes{pool=\"host\"}"), 67108864);
  EXPECT_EQ(samples.at("ubd_pool_page_bytes{pool=\"host\"}"), 2097152);
  EXPECT_EQ(samples.at("ubd_pool_reserve_blocks{pool=\"host\"}"), 1);
  EXPECT_EQ(samples.at("ubd_transfers_total{path=\"direct\",reason=\"\",from=\"file\",to=\"host\"}"), 5);
  EXPECT_EQ(samples.at("ubd_transfer_bytes_total{path=\"staged\",reason=\"forced\",from=\"host\",to=\"file\"}"), 600);
  EXPECT_EQ(samples.at("ubd_transfers_failed_total{path=\"direct\",reason=\"\",from=\"file\",to=\"host\"}"), 1);
  EXPECT_EQ(samples.at("ubd_blocks_registered"), 1);
  EXPECT_EQ(samples.at("ubd_path_policy{policy=\"staged-only\"}"), 1);
  EXPECT_EQ(samples.at("ubd_queues{state=\"open\"}"), 2);
  EXPECT_EQ(samples.at("ubd_queues{state=\"broken\"}"), 1);
  EXPECT_EQ(samples.at("ubd_queues{state=\"closing\"}"), 0);
  EXPECT_EQ(samples.at("ubd_transfers_in_flight"), 7);
  EXPECT_EQ(samples.at("ubd_transfers_waiting"), 9);
  EXPECT_EQ(samples.at("ubd_sessions"), 5);
  EXPECT_EQ(samples.at("ubd_leases"), 6);
  EXPECT_EQ(samples.at("ubd_waiters"), 7);
  EXPECT_EQ(samples.at("ubd_draining"), 0);
  EXPECT_EQ(samples.at("ubd_reclaimed_sessions_total"), 8);
  EXPECT_EQ(samples.at("ubd_reclaimed_leases_total"), 9);
  EXPECT_EQ(samples.at("ubd_grants_total{source=\"daemon\"}"), 3);
  EXPECT_EQ(samples.at("ubd_grants_total{source=\"cache\"}"), 12);
  EXPECT_EQ(samples.at("ubd_recycles_total"), 1);
  EXPECT_EQ(samples.at("ubd_tampered_total"), 1);
  EXPECT_EQ(samples.at("ubd_acquire_wait_seconds_count"), 3);
  EXPECT_NEAR(samples.at("ubd_acquire_wait_seconds_sum"), 0.15, 1e-9);
  EXPECT_EQ(samples.at("ubd_rpc_seconds_count{code=\"OK\",method=\"Acquire\"}"), 2);
  EXPECT_EQ(samples.at("ubd_rpc_seconds_bucket{code=\"OK\",method=\"Acquire\",le=\"0.0001\"}"), 1);
  EXPECT_EQ(samples.at("ubd_rpc_seconds_count{code=\"NOT_FOUND\",method=\"Release\"}"), 1);
  EXPECT_EQ(text.types.at("ubd_build_info"), "gauge");
  EXPECT_EQ(text.types.at("ubd_rpc_seconds"), "histogram");
}

TEST(Metrics, OnlyMetricsAreServed) {
  std::string address = FreeAddress();
  auto metrics = Metrics::Create(address, {});
  ASSERT_TRUE(metrics.ok());
  EXPECT_THAT(Get(address, "/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get(address, "/../../etc/passwd"), testing::Not(StartsWith("HTTP/1.1 200")));
  EXPECT_THAT(Get(address, "//etc/passwd"), testing::Not(StartsWith("HTTP/1.1 200")));
  EXPECT_THAT(ParsePrometheus(Scrape(address)).problems, IsEmpty());  // sources may be missing
}

TEST(Metrics, TheEndDoesNotWaitForTheWebServer) {
  for (bool scraped : {false, true}) {
    std::string address = FreeAddress();
    auto metrics = Metrics::Create(address, SomeSources());
    ASSERT_TRUE(metrics.ok());
    if (scraped) Scrape(address);
    absl::Time start = absl::Now();
    metrics->reset();
    EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  }
}

TEST(Metrics, APortInUseIsATypedErrorWithACure) {
  std::string address = FreeAddress();
  auto first = Metrics::Create(address, {});
  ASSERT_TRUE(first.ok());
  testing::internal::CaptureStderr();
  absl::Status second = Metrics::Create(address, {}).status();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(second.ok());
  EXPECT_EQ(ub::ReasonOf(second), ub::Reason::kKernelRefused);
  EXPECT_THAT(std::string(second.message()), HasSubstr(address));
  EXPECT_THAT(std::string(second.message()), HasSubstr("in use"));
  EXPECT_THAT(std::string(second.message()), HasSubstr("metrics.listen"));
  // The port is given back.
  first->reset();
  EXPECT_TRUE(Metrics::Create(address, {}).ok());
}

TEST(Metrics, AnAddressThatOthersReachIsRefused) {
  for (const char* bad : {"0.0.0.0:9401", "192.0.2.1:9401", "[::1]:9401", "9401", "localhost:9401", "127.0.0.1:0"}) {
    absl::Status status = Metrics::Create(bad, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(ub::ReasonOf(status), ub::Reason::kBadField) << bad;
  }
}

TEST(Metrics, OffCostsNothingAndTakesEverything) {
  auto metrics = Metrics::Create("", SomeSources());
  ASSERT_TRUE(metrics.ok());
  (*metrics)->ObserveRpc("Acquire", "OK", absl::Seconds(1));
  (*metrics)->OnEvent(Of(EventKind::kGranted));
}

TEST(Metrics, SilentConnectionsDoNotBlockTheScrapeForLong) {
  std::string address = FreeAddress();
  auto metrics = Metrics::Create(address, SomeSources());
  ASSERT_TRUE(metrics.ok());
  auto parsed = ParseListenAddress(address);
  std::vector<ub::UniqueFd> silent;
  for (int i = 0; i < 2; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(silent.back().get(), reinterpret_cast<sockaddr*>(&parsed->socket_address),
                      sizeof(parsed->socket_address)),
              0);
  }
  EXPECT_THAT(Scrape(address), HasSubstr("ubd_sessions 5"));
}

TEST(Metrics, CountersAndScrapesFromManyThreads) {
  std::string address = FreeAddress();
  auto metrics = Metrics::Create(address, SomeSources());
  ASSERT_TRUE(metrics.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        (*metrics)->OnEvent(Of(EventKind::kGranted));
        (*metrics)->ObserveRpc(absl::StrCat("M", t), "OK", absl::Microseconds(i));
      }
    });
  }
  for (int i = 0; i < 5; ++i) EXPECT_THAT(ParsePrometheus(Scrape(address)).problems, IsEmpty());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ParsePrometheus(Scrape(address)).samples.at("ubd_grants_total{source=\"daemon\"}"), 3000);
}

}  // namespace
}  // namespace ubd
