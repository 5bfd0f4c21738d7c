// libub against the real daemon, with real processes of several users.
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

namespace ubd::testing {
namespace {

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

TEST_F(ClientLeaseTest, CachedLeaseCostsACall) {
  std::unique_ptr<ub::Client> client = Connect();
  auto lease = client->Acquire({.bytes = ub::Bytes(kBlock * 3)});
  ASSERT_TRUE(lease.ok()) << lease.status();
  lease->data()[lease->size() - 1] = std::byte{7};
  std::byte* at = lease->data();
  ASSERT_TRUE(lease->Release().ok());
  EXPECT_EQ(watch_->Pools().pools(0).blocks_cached(), 3u);
  uint64_t calls = client->stats().rpcs;
  auto again = client->Acquire({.bytes = ub::Bytes(kBlock * 3)});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->data(), at);
  EXPECT_EQ(again->data()[again->size() - 1], std::byte{7});
  EXPECT_EQ(client->stats().rpcs, calls);
  EXPECT_EQ(watch_->Pools().pools(0).blocks_leased(), 3u);
  ASSERT_TRUE(again->Release().ok());
  ASSERT_TRUE(client->DropCache().ok());
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, CacheOfOneStarvesAnother) {
  auto hoarder = Actor(kNobody);
  ASSERT_THAT(Do(*hoarder, absl::StrCat("acquire ", kBlock * kBlocks)), StartsWith("ok"));
  ASSERT_EQ(Do(*hoarder, "release"), "ok");
  EXPECT_EQ(watch_->Pools().pools(0).blocks_cached(), kBlocks);
  auto other = Actor(kSomebody);
  ASSERT_THAT(Do(*other, absl::StrCat("acquire ", kBlock * kBlocks, " 20000")), StartsWith("ok"));
  EXPECT_EQ(Do(*hoarder, "await-end"), "ok recalled");
  EXPECT_THAT(Do(*hoarder, "stats"), HasSubstr("recalled=1 cached=0"));
  // And back: what is held is not recalled.
  EXPECT_THAT(Do(*hoarder, absl::StrCat("acquire ", kBlock, " 100")), StartsWith("WAIT_TIMEOUT"));
}

TEST_F(ClientLeaseTest, StoppedClientKeepsItsCache) {
  auto hoarder = Actor(kNobody);
  ASSERT_THAT(Do(*hoarder, absl::StrCat("acquire ", kBlock * kBlocks)), StartsWith("ok"));
  ASSERT_EQ(Do(*hoarder, "release"), "ok");
  Stop(*hoarder);
  auto other = Actor(kSomebody);
  EXPECT_THAT(Do(*other, absl::StrCat("acquire ", kBlock, " 20000")), StartsWith("ok"));
  hoarder->Signal(SIGCONT);
  EXPECT_EQ(Do(*hoarder, "await-end"), "ok recalled");
}

TEST_F(ClientLeaseTest, OwnCacheOfTheWrongSizeBlocksARequest) {
  std::unique_ptr<ub::Client> client = Connect();
  {
    std::vector<ub::Lease> leases;
    for (uint64_t i = 0; i < kBlocks; ++i) {
      auto lease = client->Acquire({.bytes = ub::Bytes(kBlock)});
      ASSERT_TRUE(lease.ok()) << lease.status();
      leases.push_back(*std::move(lease));
    }
    EXPECT_EQ(ReasonOf(client->Acquire({.bytes = ub::Bytes(kBlock)}).status()), Reason::kPoolEmpty);
  }
  auto all = client->Acquire({.bytes = ub::Bytes(kBlock * kBlocks), .wait = absl::Seconds(20)});
  EXPECT_TRUE(all.ok()) << all.status();
}

TEST_F(ClientLeaseTest, ShareReachesTheWrongUserOrTwice) {
  auto owner = Actor(kNobody);
  auto friend_ = Actor(kSomebody);
  auto stranger = Actor(Ids{1001, 65534});
  ASSERT_THAT(Do(*owner, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  ASSERT_EQ(Do(*owner, "put hello"), "ok");
  std::string ticket = Rest(Do(*owner, absl::StrCat("share ", kSomebody.uid, " ro")));
  EXPECT_THAT(Do(*stranger, "attach " + ticket), StartsWith("NO_SUCH_TICKET"));
  ASSERT_EQ(Do(*friend_, "attach " + ticket), "ok");
  EXPECT_EQ(Do(*friend_, "get 5"), "ok hello");
  EXPECT_THAT(Do(*friend_, "attach " + ticket), StartsWith("NO_SUCH_TICKET"));
  EXPECT_EQ(Do(*friend_, "alive"), "ok alive");
  ASSERT_EQ(Do(*owner, "release"), "ok");
  EXPECT_EQ(Do(*friend_, "await-end"), "ok owner_released");
  EXPECT_EQ(Do(*friend_, "alive"), "ok ended");
  EXPECT_THAT(Do(*friend_, "release"), StartsWith("NO_SUCH_LEASE"));
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, ReadOnlyShareMadeWritable) {
  auto owner = Actor(kNobody);
  auto reader = Actor(kSomebody);
  ASSERT_THAT(Do(*owner, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  ASSERT_EQ(Do(*reader, "attach " + Rest(Do(*owner, absl::StrCat("share ", kSomebody.uid, " ro")))), "ok");
  EXPECT_EQ(Do(*reader, "make-writable"), absl::StrCat("ok errno ", EACCES));
  // Where the kernel cannot enforce it, the answer says so.
  auto root = Actor(std::nullopt);
  EXPECT_EQ(Do(*root, "attach " + Rest(Do(*owner, "share 0 ro"))), "ok advisory");
  // A writable share is writable.
  auto writer = Actor(kSomebody);
  ASSERT_EQ(Do(*writer, "attach " + Rest(Do(*owner, absl::StrCat("share ", kSomebody.uid, " rw")))), "ok");
  ASSERT_EQ(Do(*writer, "put from-writer"), "ok");
  EXPECT_EQ(Do(*owner, "get 11"), "ok from-writer");
}

TEST_F(ClientLeaseTest, RevokeOrExpiryNotTold) {
  std::unique_ptr<ub::Client> client = Connect();
  ub::Mutex mu;
  ub::CondVar changed;
  std::vector<ub::Event> events;
  client->OnEvent([&](const ub::Event& event) {
    ub::MutexLock lock(&mu);
    events.push_back(event);
    changed.SignalAll();
  });
  auto await = [&](size_t count) {
    ub::MutexLock lock(&mu);
    while (events.size() < count) {
      if (changed.WaitWithTimeout(&mu, kBound)) return ub::Event::Kind::kDisconnected;
    }
    return events[count - 1].kind;
  };
  auto lease = client->Acquire({.bytes = ub::Bytes(kBlock)});
  ASSERT_TRUE(lease.ok());
  grpc::ClientContext context;
  ub::v1::RevokeLeaseRequest request;
  request.set_lease(lease->id().value());
  ub::v1::RevokeLeaseResponse response;
  ASSERT_TRUE(watch_->admin().RevokeLease(&context, request, &response).ok());
  EXPECT_EQ(await(1), ub::Event::Kind::kRevoked);
  EXPECT_FALSE(lease->alive());
  EXPECT_EQ(ReasonOf(lease->Release()), Reason::kRevoked);

  auto brief = client->Acquire({.bytes = ub::Bytes(kBlock), .ttl = absl::Milliseconds(300)});
  ASSERT_TRUE(brief.ok());
  EXPECT_TRUE(brief->alive());
  EXPECT_LE(*brief->ttl_left(), absl::Milliseconds(300));
  EXPECT_EQ(await(2), ub::Event::Kind::kExpired);
  EXPECT_FALSE(brief->alive());
  EXPECT_EQ(ReasonOf(brief->Release()), Reason::kExpired);
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, ForkedChildFreesOrKeepsTheSession) {
  auto parent = Actor(kNobody);
  ASSERT_THAT(Do(*parent, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  pid_t child = 0;
  ASSERT_TRUE(absl::SimpleAtoi(Rest(Do(*parent, "fork-sleep")), &child));
  EXPECT_EQ(watch_->Pools().pools(0).blocks_leased(), 1u);
  EXPECT_EQ(Do(*parent, "alive"), "ok alive");
  // The child has the sockets open; the parent's death is seen all the same.
  parent->Kill();
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
  ::kill(child, SIGKILL);
}

TEST_F(ClientLeaseTest, ChildsExitEndsTheParentsLease) {
  std::unique_ptr<ub::Client> client = Connect();
  auto lease = client->Acquire({.bytes = ub::Bytes(kBlock)});
  ASSERT_TRUE(lease.ok());
  pid_t child = ::fork();
  if (child == 0) {
    absl::Status used = lease->Release();
    absl::Status anew = ub::Client::Connect({.runtime_dir = daemon_->runtime_dir()}).status();
    client.reset();
    ::_exit(ReasonOf(used) == Reason::kForked && ReasonOf(anew) == Reason::kForked ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lease->alive());
  EXPECT_TRUE(client->Ping().ok());
  lease->data()[0] = std::byte{1};
  EXPECT_TRUE(lease->Release().ok());
}

TEST_F(ClientLeaseTest, ExecKeepsTheSession) {
  auto actor = Actor(kNobody);
  ASSERT_THAT(Do(*actor, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  ASSERT_TRUE(actor->WriteLine("exec /bin/sleep 1000"));
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, TooFewDescriptorsLoseBlocks) {
  std::unique_ptr<ub::Client> client = Connect();
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  uint64_t open = ReadProcFacts(::getpid()).fds;
  rlimit few = {.rlim_cur = open + 5, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  absl::Status status = client->Acquire({.bytes = ub::Bytes(kBlock * kBlocks)}).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ReasonOf(status), Reason::kClientFdLimit) << status;
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
  EXPECT_EQ(client->Acquire({.bytes = ub::Bytes(kBlock * kBlocks), .wait = kBound}).status(), absl::OkStatus());
}

TEST_F(ClientLeaseTest, LeaseLargerThanAPacketOfDescriptors) {
  Start(600, "");
  std::unique_ptr<ub::Client> client = Connect();
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  // Fewer than the lease has blocks: they need not all be open at once.
  rlimit few = {.rlim_cur = ReadProcFacts(::getpid()).fds + 300, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto lease = client->Acquire({.bytes = ub::Bytes(kBlock * 600)});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(lease.ok()) << lease.status();
  for (size_t i = 0; i < 600; ++i) lease->data()[i * kBlock] = static_cast<std::byte>(i);
  for (size_t i = 0; i < 600; ++i) ASSERT_EQ(lease->data()[i * kBlock], static_cast<std::byte>(i));
}

TEST_F(ClientLeaseTest, ThreadsMixUpTheirLeases) {
  std::unique_ptr<ub::Client> client = Connect();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 25; ++round) {
        auto lease = client->Acquire({.bytes = ub::Bytes(kBlock * 3), .wait = kBound, .cacheable = round % 2 == 0});
        ASSERT_TRUE(lease.ok()) << lease.status();
        std::byte mark = static_cast<std::byte>(t * 50 + round + 1);
        for (size_t i = 0; i < 3; ++i) lease->data()[i * kBlock] = mark;
        std::this_thread::yield();
        for (size_t i = 0; i < 3; ++i) ASSERT_EQ(lease->data()[i * kBlock], mark);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(client->stats().leases, 100u);
  client.reset();
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

TEST_F(ClientLeaseTest, StalledDaemonBlocksForever) {
  std::unique_ptr<ub::Client> client = Connect();
  Stop(daemon_->process());
  absl::Time start = absl::Now();
  EXPECT_EQ(ReasonOf(client->Ping(absl::Milliseconds(300))), Reason::kNotAnswering);
  auto refused = ub::Client::Connect({.runtime_dir = daemon_->runtime_dir(), .deadline = absl::Milliseconds(300)});
  EXPECT_EQ(ReasonOf(refused.status()), Reason::kNotAnswering) << refused.status();
  EXPECT_EQ(ReasonOf(client->Acquire({.bytes = ub::Bytes(kBlock)}).status()), Reason::kNotAnswering);
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  daemon_->process().Signal(SIGCONT);
  EXPECT_EQ(client->Ping(kBound), absl::OkStatus());
  EXPECT_EQ(watch_->WaitUntilAllFree(kBound), absl::OkStatus());  // what was given up has left nothing behind
  EXPECT_TRUE(client->Acquire({.bytes = ub::Bytes(kBlock * kBlocks), .wait = kBound}).ok());
}

TEST_F(ClientLeaseTest, StoppedDaemonNotTold) {
  auto actor = Actor(kNobody);
  ASSERT_THAT(Do(*actor, absl::StrCat("acquire ", kBlock)), StartsWith("ok"));
  daemon_->process().Signal(SIGTERM);
  EXPECT_EQ(Do(*actor, "await-end"), "ok stopping");
  EXPECT_EQ(Do(*actor, "await-end"), "ok disconnected");
  EXPECT_EQ(Do(*actor, "alive"), "ok ended");
  EXPECT_THAT(Do(*actor, absl::StrCat("acquire ", kBlock)), StartsWith("SESSION_ENDED"));
  EXPECT_THAT(Do(*actor, "release"), StartsWith("SESSION_ENDED"));
}

TEST_F(ClientLeaseTest, SlotsOverBlocksOfOneLease) {
  std::unique_ptr<ub::Client> client = Connect();
  auto pool = ub::SlotPool::Create(*client, {.slot = ub::KiB(768), .bytes = ub::Bytes(kBlock * 4)});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ((*pool)->slots(), 8u);
  std::vector<ub::Slot> slots;
  while (ub::Slot slot = (*pool)->Take()) {
    slot.data()[slot.size() - 1] = std::byte{1};
    slots.push_back(std::move(slot));
  }
  EXPECT_EQ(slots.size(), 8u);
  slots.clear();
  EXPECT_TRUE((*pool)->Check().ok());
  daemon_->process().Kill();
  while ((*pool)->Check().ok()) std::this_thread::yield();
  EXPECT_EQ(ReasonOf((*pool)->Check()), Reason::kSessionEnded);
}

TEST_F(ClientLeaseTest, ExamplesDoNotRun) {
  for (const char* example : {"hello_lease", "share_between_processes"}) {
    for (std::optional<Ids> ids : {std::optional<Ids>(), std::optional<Ids>(kNobody)}) {
      auto run =
          RunCommand({.argv = {absl::StrCat(EXAMPLES_DIR, "/", example), daemon_->runtime_dir()}, .ids = ids}, kBound);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->code, 0) << example << ": " << run->out;
    }
  }
  EXPECT_TRUE(watch_->WaitUntilAllFree(kBound).ok());
}

}  // namespace
}  // namespace ubd::testing
