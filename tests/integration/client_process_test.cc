// libub against the real daemon: what becomes of sessions and leases when processes fork, exec, stop, or run out of
// descriptors.
#include "tests/integration/client_lease_fixture.h"

namespace ubd::testing {
namespace {

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
