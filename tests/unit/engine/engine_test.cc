// The engine through its own door, with real rings, real files and real threads.
#include "daemon/engine/engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "proto/wire/error.h"
#include "tests/unit/engine/lane_rig.h"

namespace ubd {
namespace {

using ub::wire::CompletionEntry;
using ub::wire::Op;
using ub::wire::Path;
using ub::wire::PathPolicy;
using ub::wire::QueueState;
using ub::wire::SubmitEntry;
using ub::wire::TransferError;

constexpr int kPatienceMs = 10'000;

EngineOptions Options() {
  EngineOptions options;
  options.threads = 2;
  options.max_queues_per_session = 3;
  options.max_files_per_session = 2;
  options.files.file_systems = {"ext4", "xfs", "btrfs", "f2fs", "tmpfs", "overlay"};
  return options;
}

// A queue as its client sees it.
struct ClientQueue {
  explicit ClientQueue(OpenedQueue from) : opened(std::move(from)) {
    bytes = opened.layout.bytes();
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened.memory.get(), 0);
    EXPECT_NE(data, MAP_FAILED);
    client = std::make_unique<RingClient>(data, opened.layout, opened.event.get());
  }
  ~ClientQueue() { munmap(data, bytes); }
  CompletionEntry Do(const SubmitEntry& entry) {
    client->Submit(entry);
    std::optional<CompletionEntry> done = client->Wait(kPatienceMs);
    EXPECT_TRUE(done.has_value());
    return done.value_or(CompletionEntry{});
  }
  OpenedQueue opened;
  size_t bytes;
  void* data;
  std::unique_ptr<RingClient> client;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : core(4), memory(4, kBlock), engine(*Engine::Create(Options(), memory)) {
    engine->Start(*core.broker);
    session = core.Open(kAlice);
    engine->OpenSession(session, kAlice, getpid());
    lease = core.Take(session, {.blocks = 2});
  }
  ~EngineTest() override { engine->Stop(absl::Seconds(10)); }
  bool NoIoUring() const { return engine->Paths().file_engine != "io_uring"; }
  absl::StatusOr<OpenedQueue> Open(uint32_t sq = 16, uint32_t cq = 32) { return engine->OpenQueue({session, sq, cq}); }
  ub::UniqueFd TempFile(const std::string& content) {
    std::string path = ::testing::TempDir() + "/ubd-engine-XXXXXX";
    ub::UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
    EXPECT_EQ(write(fd.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(unlink(path.c_str()), 0);
    return fd;
  }
  SubmitEntry Entry(Op op, uint32_t handle, uint64_t length) const {
    SubmitEntry entry = {};
    entry.op = static_cast<uint8_t>(op);
    entry.lease = lease.lease.value();
    entry.generation = static_cast<uint32_t>(lease.generation.value());
    entry.target = handle;
    entry.length = length;
    return entry;
  }
  char* Block(size_t i) { return static_cast<char*>(memory.Locate(lease.blocks[i].block).address); }

  Rig core;
  FlatMemory memory;
  std::unique_ptr<Engine> engine;
  SessionId session;
  Grant lease;
};

TEST_F(EngineTest, ReadsAndWritesEveryByte) {
  if (NoIoUring()) GTEST_SKIP() << engine->Paths().file_engine;
  std::string content(3'000'001, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 13 + i / 4096);
  Engine::OpenedFile file = *engine->OpenFile(session, TempFile(content));
  if (file.handle == 0) GTEST_SKIP() << "no file system here that can be trusted: " << file.facts.file_system;
  ClientQueue queue(*Open());
  CompletionEntry done = queue.Do(Entry(Op::kRead, file.handle, 2 * kBlock.count()));
  EXPECT_EQ(ErrorIn(done), TransferError::kOk);
  EXPECT_EQ(done.bytes, content.size());
  EXPECT_NE(PathIn(done), Path::kNone);
  EXPECT_EQ(std::string_view(Block(0), kBlock.count()), content.substr(0, kBlock.count()));
  EXPECT_EQ(std::string_view(Block(1), content.size() - kBlock.count()), content.substr(kBlock.count()));

  std::string path;
  ub::UniqueFd target = TempFile("");
  ub::UniqueFd check(fcntl(target.get(), F_DUPFD_CLOEXEC, 0));
  Engine::OpenedFile out = *engine->OpenFile(session, std::move(target));
  for (PathPolicy policy : {PathPolicy::kStagedOnly, PathPolicy::kPreferDirect}) {
    SubmitEntry entry = Entry(Op::kWrite, out.handle, 1'048'576);
    entry.policy = static_cast<uint8_t>(policy);
    entry.target_offset = 8192;
    EXPECT_EQ(ErrorIn(queue.Do(entry)), TransferError::kOk);
    EXPECT_EQ(ErrorIn(queue.Do(Entry(Op::kFsync, out.handle, 0))), TransferError::kOk);
    std::string back(1'048'576, 'x');
    EXPECT_EQ(pread(check.get(), back.data(), back.size(), 8192), static_cast<ssize_t>(back.size()));
    EXPECT_EQ(back, content.substr(0, back.size()));
  }
  uint64_t bytes = 0;
  for (const PathCounter& counter : engine->Paths().counts) bytes += counter.bytes;
  EXPECT_EQ(bytes, content.size() + uint64_t{2} * 1'048'576);
}

TEST_F(EngineTest, FilesHaveHandlesAndALimit) {
  Engine::OpenedFile first = *engine->OpenFile(session, TempFile("x"));
  if (first.handle == 0) GTEST_SKIP() << "no file system here that can be trusted: " << first.facts.file_system;
  ASSERT_TRUE(engine->OpenFile(session, TempFile("x")).ok());
  EXPECT_EQ(ub::ReasonOf(engine->OpenFile(session, TempFile("x")).status()), ub::Reason::kTooManyFiles);
  EXPECT_EQ(engine->CloseFile(session, first.handle), absl::OkStatus());
  EXPECT_EQ(ub::ReasonOf(engine->CloseFile(session, first.handle)), ub::Reason::kNoSuchFile);
  EXPECT_TRUE(engine->OpenFile(session, TempFile("x")).ok());
  EXPECT_EQ(ub::ReasonOf(engine->OpenFile(SessionId(99), TempFile("x")).status()), ub::Reason::kSessionEnded);
}

TEST_F(EngineTest, QueuesHaveSizesAndALimit) {
  for (auto [sq, cq] : {std::pair{0U, 8U}, {1U, 8U}, {3U, 8U}, {8192U, 8192U}, {8U, 4U}, {8U, 12U}, {8U, 1U << 20}}) {
    EXPECT_EQ(Open(sq, cq).status().code(), absl::StatusCode::kInvalidArgument) << sq << " " << cq;
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Open().ok());
  EXPECT_EQ(ub::ReasonOf(Open().status()), ub::Reason::kTooManyQueues);
  EXPECT_EQ(engine->Queues().size(), 3U);
  EXPECT_EQ(engine->CloseQueue(session, 2), absl::OkStatus());
  EXPECT_EQ(ub::ReasonOf(engine->CloseQueue(session, 2)), ub::Reason::kNoSuchQueue);
  ASSERT_TRUE(Until([this] { return engine->Queues().size() == 2; }));
  EXPECT_EQ(Open(4096, 8192)->id, 4U) << "numbers are not used twice";
}

TEST_F(EngineTest, CloseSessionClosesItsQueues) {
  ClientQueue queue(*Open());
  EXPECT_EQ(queue.Do(Nop(5)).user_data, 5U);
  const SessionId other = core.Open(kBob);
  engine->OpenSession(other, kBob, getpid());
  ClientQueue kept(*engine->OpenQueue({other, 16, 32}));
  engine->CloseSession(session);
  ASSERT_TRUE(Until([&queue] { return queue.client->state() == QueueState::kClosed; }));
  ASSERT_TRUE(Until([this] { return engine->Queues().size() == 1; }));
  EXPECT_EQ(kept.Do(Nop(6)).user_data, 6U);
  EXPECT_EQ(ub::ReasonOf(Open().status()), ub::Reason::kSessionEnded);
}

TEST_F(EngineTest, StopEndsEverything) {
  ClientQueue queue(*Open());
  queue.Do(Nop(1));
  EXPECT_EQ(engine->Stop(absl::Seconds(10)), 0U);
  ASSERT_TRUE(Until([&queue] { return queue.client->state() == QueueState::kClosed; }));
  EXPECT_EQ(ub::ReasonOf(Open().status()), ub::Reason::kStopping);
}

TEST_F(EngineTest, TheNodesPolicyIsTheLastWord) {
  EXPECT_EQ(engine->Paths().policy, PathPolicy::kPreferDirect);
  engine->SetPolicy(PathPolicy::kStagedOnly);
  EXPECT_EQ(engine->Paths().policy, PathPolicy::kStagedOnly);
  const PathStatus paths = engine->Paths();
  EXPECT_TRUE(paths.registered || NoIoUring()) << paths.registration;
}

TEST(EngineCreate, AnImpossibleCpuIsSaid) {
  FlatMemory memory(1, kBlock);
  EngineOptions options;
  options.cpus = {0, 1000};
  absl::Status status = Engine::Create(options, memory).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("1000"), std::string::npos) << status;
}

}  // namespace
}  // namespace ubd
