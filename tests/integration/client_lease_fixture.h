// A real daemon, clients of it in this process, and helpers that run clients as other users.
#ifndef UBD_TESTS_INTEGRATION_CLIENT_LEASE_FIXTURE_H_
#define UBD_TESTS_INTEGRATION_CLIENT_LEASE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/wire/mutex.h"
#include "tests/integration/harness/daemon.h"
#include "tests/integration/harness/pool_watch.h"
#include "tests/integration/harness/process.h"
#include "ub/client.h"
#include "ub/slot_pool.h"

// The program that acts as another user; the build says where it is.
#ifndef CLIENT_ACTOR
#define CLIENT_ACTOR "client_actor"
#endif

namespace ubd::testing {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using ub::MiB;
using ub::Reason;
using ub::ReasonOf;

constexpr absl::Duration kBound = absl::Seconds(30);
constexpr uint64_t kBlock = 2 << 20;
constexpr uint64_t kBlocks = 32;

class ClientLeaseTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(kBlocks, ""); }
  void Start(uint64_t blocks, const std::string& more) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to run clients as other users";
    watch_.reset();
    daemon_.reset();
    DaemonOptions options;
    options.config = absl::StrCat("pool { name: \"p\" block_size: \"2MiB\" blocks: ", blocks,
                                  " page_size: \"4KiB\" reserve_blocks: 8 }\nsocket { group: \"nogroup\" }\n", more);
    options.open_to_all = true;
    auto daemon = DaemonProcess::Start(options);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    auto watch = PoolWatch::Start(daemon_->runtime_dir());
    ASSERT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
  }
  std::unique_ptr<ub::Client> Connect() {
    auto client = ub::Client::Connect({.runtime_dir = daemon_->runtime_dir()});
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  std::unique_ptr<Process> Actor(std::optional<Ids> ids) {
    auto process = Process::Start({.argv = {CLIENT_ACTOR, daemon_->runtime_dir()},
                                   .env = {"GRPC_VERBOSITY=NONE"},
                                   .ids = ids,
                                   .capture = true,
                                   .feed = true});
    EXPECT_TRUE(process.ok()) << process.status();
    EXPECT_EQ(Line(**process), "ok");
    return *std::move(process);
  }
  static std::string Line(Process& process) {
    auto line = process.ReadLine(kBound);
    return line.ok() ? *line : line.status().ToString();
  }
  static std::string Do(Process& process, const std::string& what) {
    if (!process.WriteLine(what)) return "gone";
    return Line(process);
  }
  // SIGSTOP, and until it has taken effect.
  static void Stop(Process& process) {
    process.Signal(SIGSTOP);
    siginfo_t info = {};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WSTOPPED | WNOWAIT), 0);
  }
  static std::string Rest(const std::string& answer) { return std::string(absl::StripPrefix(answer, "ok ")); }

  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<PoolWatch> watch_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_INTEGRATION_CLIENT_LEASE_FIXTURE_H_
