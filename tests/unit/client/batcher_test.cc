// Records in batches, written by a thread that plays the daemon and its disk.
#include "ub/batcher.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "proto/wire/error.h"
#include "tests/unit/client/test_client.h"

namespace ub {
namespace {

// Executes WRITEs into a string.
class DiskThread {
 public:
  DiskThread(RingDaemon& daemon, TestClient& client) : daemon_(daemon), client_(client) {
    thread_ = std::thread([this] { Run(); });
  }
  ~DiskThread() {
    stopping_.store(true);
    uint64_t one = 1;
    EXPECT_EQ(::write(daemon_.event(), &one, sizeof(one)), 8);
    thread_.join();
  }
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // The file so far; only while nothing is in flight.
  std::string content() const { return content_; }
  std::vector<wire::SubmitEntry> entries() const { return entries_; }
  // Writes beyond this fail.
  std::atomic<uint64_t> limit{UINT64_MAX};

 private:
  void Run() {
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event interest = {.events = EPOLLIN | EPOLLET, .data = {}};
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, daemon_.event(), &interest);
    while (!stopping_.load()) {
      wire::SubmitEntry entry;
      if (daemon_.ring().Take(entry)) {
        Write(entry);
        continue;
      }
      if (!daemon_.ring().PrepareSleep()) continue;
      epoll_event event = {};
      ::epoll_wait(epoll.get(), &event, 1, 30000);
      daemon_.ring().EndSleep();
    }
  }
  void Write(const wire::SubmitEntry& entry) {
    entries_.push_back(entry);
    wire::CompletionEntry done = daemon_.Done(entry);
    uint64_t end = entry.target_offset + entry.length;
    if (end > limit) {
      done = daemon_.Done(entry, wire::TransferError::kNoSpace);
      done.bytes = std::max<uint64_t>(limit, entry.target_offset) - entry.target_offset;
    }
    if (content_.size() < entry.target_offset + done.bytes) content_.resize(entry.target_offset + done.bytes);
    std::memcpy(content_.data() + entry.target_offset, client_.memory[entry.lease] + entry.offset, done.bytes);
    daemon_.Answer(done);
  }

  RingDaemon& daemon_;
  TestClient& client_;
  std::atomic<bool> stopping_{false};
  std::string content_;
  std::vector<wire::SubmitEntry> entries_;
  std::thread thread_;
};

class BatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    queue_ = *Queue::Open(client_, {.depth = 4});
    slots_ = *SlotPool::Create(client_, {.slot = KiB(16), .bytes = MiB(2)});
    int fd = ::memfd_create("file", MFD_CLOEXEC);
    file_ = *File::FromDescriptor(client_, fd);
    ::close(fd);
    disk_ = std::make_unique<DiskThread>(*client_.transfers.daemons.back(), client_);
  }
  static absl::Span<const std::byte> Record(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
  }

  TestClient client_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<SlotPool> slots_;
  File file_;
  std::unique_ptr<DiskThread> disk_;
};

TEST_F(BatcherTest, RecordsLostReorderedOrUnaligned) {
  std::mt19937 random(7);
  std::string expected(1000, '\0');
  std::vector<int> told;
  int failed = 0;
  {
    Batcher batcher(*queue_, *slots_, file_, {.offset = Bytes(1000), .size = KiB(8), .delay = absl::Hours(1)});
    for (int i = 0; i < 3000; ++i) {
      std::string record(1 + random() % 700, static_cast<char>('a' + i % 26));
      expected += record;
      told.push_back(0);
      auto done = [&, i, size = record.size()](const Completion& completion) {
        ++told[static_cast<size_t>(i)];
        if (!completion.status.ok() || completion.bytes != Bytes(size)) ++failed;
      };
      while (!batcher.Add(Record(record), done).ok()) batcher.Poll();
      if (i % 100 == 0) batcher.Poll();
    }
    EXPECT_EQ(batcher.position(), Bytes(expected.size()));
    EXPECT_TRUE(batcher.Flush().ok());
    for (int times : told) ASSERT_EQ(times, 1);
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(queue_->in_flight(), 0u);
  EXPECT_TRUE(disk_->content() == expected);
  std::vector<wire::SubmitEntry> entries = disk_->entries();
  for (size_t i = 1; i + 1 < entries.size(); ++i) {
    EXPECT_EQ(entries[i].target_offset % KiB(8).count(), 0u);
    EXPECT_EQ(entries[i].length, KiB(8).count());
  }
}

TEST_F(BatcherTest, ContentDiffers) {
  std::string expected;
  {
    Batcher batcher(*queue_, *slots_, file_, {.size = KiB(4)});
    for (int i = 0; i < 500; ++i) {
      std::string record = "record " + std::to_string(i * 7919) + std::string(static_cast<size_t>(i), '.');
      expected += record;
      ASSERT_TRUE(batcher.Add(Record(record), nullptr).ok());
      batcher.Poll();
    }
  }  // flushes
  EXPECT_TRUE(disk_->content() == expected);
}

TEST_F(BatcherTest, OldRecordWaitsForEver) {
  Batcher batcher(*queue_, *slots_, file_, {.delay = absl::Milliseconds(5)});
  EXPECT_EQ(batcher.until_due(), absl::InfiniteDuration());
  bool done = false;
  ASSERT_TRUE(batcher.Add(Record("small"), [&](const Completion&) { done = true; }).ok());
  EXPECT_LE(batcher.until_due(), absl::Milliseconds(5));
  EXPECT_EQ(batcher.Poll(), 0u);
  absl::Time begin = absl::Now();
  while (!done && absl::Now() - begin < absl::Seconds(30)) batcher.Poll();
  EXPECT_TRUE(done);
  EXPECT_EQ(batcher.until_due(), absl::InfiniteDuration());
}

TEST_F(BatcherTest, RecordsThatCannotBe) {
  Batcher batcher(*queue_, *slots_, file_, {});
  EXPECT_EQ(batcher.Add({}, nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(batcher.Add(Record(std::string(16385, 'x')), nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(batcher.Add(Record(std::string(16384, 'x')), nullptr).ok());
}

TEST_F(BatcherTest, NoSlotLeftMeansStuck) {
  // One slot for all: a record that needs another must wait for it, and gets it.
  std::vector<Slot> taken;
  while (Slot slot = slots_->Take()) taken.push_back(std::move(slot));
  taken.pop_back();
  Batcher batcher(*queue_, *slots_, file_, {.size = KiB(16), .delay = absl::Hours(1)});
  ASSERT_TRUE(batcher.Add(Record(std::string(10000, 'a')), nullptr).ok());
  std::string second(10000, 'b');
  absl::Status status = batcher.Add(Record(second), nullptr);
  EXPECT_EQ(ReasonOf(status), Reason::kPoolEmpty);
  absl::Time begin = absl::Now();
  taken.pop_back();  // 10000 + 10000 lie in two
  while (!status.ok() && absl::Now() - begin < absl::Seconds(30)) {
    batcher.Poll();
    status = batcher.Add(Record(second), nullptr);
  }
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(batcher.Flush().ok());
  EXPECT_EQ(disk_->content().size(), 20000u);
}

TEST_F(BatcherTest, FailureToldToTheWrongRecord) {
  disk_->limit = 10000;
  std::vector<absl::Status> statuses(4);
  Batcher batcher(*queue_, *slots_, file_, {.size = KiB(8)});
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(
        batcher
            .Add(Record(std::string(4000, 'x')), [&statuses, i](const Completion& done) { statuses[i] = done.status; })
            .ok());
  }
  EXPECT_EQ(ReasonOf(batcher.Flush()), Reason::kNoSpace);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(statuses[1].ok());
  EXPECT_EQ(ReasonOf(statuses[2]), Reason::kNoSpace);  // 8000 to 12000
  EXPECT_EQ(ReasonOf(statuses[3]), Reason::kNoSpace);
  EXPECT_TRUE(batcher.Flush().ok());  // told once
}

TEST_F(BatcherTest, SessionEndLosesCallbacks) {
  int told = 0;
  Batcher batcher(*queue_, *slots_, file_, {.size = KiB(8), .delay = absl::Hours(1)});
  ASSERT_TRUE(batcher.Add(Record("a"), [&](const Completion&) { ++told; }).ok());
  client_.transfers.EndAll();
  EXPECT_EQ(ReasonOf(batcher.Flush()), Reason::kSessionEnded);
  EXPECT_EQ(told, 1);
}

TEST_F(BatcherTest, CallbackAddsMore) {
  int told = 0;
  Batcher batcher(*queue_, *slots_, file_, {.delay = absl::Hours(1)});
  auto last = [&](const Completion&) { ++told; };
  ASSERT_TRUE(batcher
                  .Add(Record("first"),
                       [&](const Completion&) {
                         ++told;
                         EXPECT_TRUE(batcher.Add(Record("second"), last).ok());
                       })
                  .ok());
  EXPECT_TRUE(batcher.Flush().ok());
  EXPECT_EQ(told, 2);
  EXPECT_EQ(disk_->content(), "firstsecond");
}

}  // namespace
}  // namespace ub
