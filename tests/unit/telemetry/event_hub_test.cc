// Events reach the audit log, sinks and watchers in order; a slow consumer loses only its own, and is told so.
#include "daemon/telemetry/event_hub.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "daemon/telemetry/audit.h"
#include "daemon/telemetry/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/mutex.h"
#include "tests/unit/telemetry/captured_log.h"

namespace ubd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Event Granted(uint64_t lease) {
  Event event{EventKind::kGranted};
  event.lease = LeaseId(lease);
  event.session = SessionId(2);
  event.uid = Uid(1000);
  event.pid = 77;
  event.pool = "host";
  event.bytes = ub::MiB(64);
  event.waited = absl::Milliseconds(3);
  return event;
}

bool All(const Event&) { return true; }

class EventHubTest : public testing::Test {
 protected:
  void SetUp() override { InitLog(LogTarget::kStderr, LogLevel::kInfo); }
};

// `wake` for a reader that blocks until it is called.
class Bell {
 public:
  std::function<void()> Ringer() {
    return [this] {
      ub::MutexLock lock(&mu_);
      ++rings_;
      rang_.SignalAll();
    };
  }
  bool WaitFor(int rings) {
    ub::MutexLock lock(&mu_);
    while (rings_ < rings) {
      if (rang_.WaitWithTimeout(&mu_, absl::Seconds(10))) return rings_ >= rings;
    }
    return true;
  }
  int rings() {
    ub::MutexLock lock(&mu_);
    return rings_;
  }

 private:
  ub::Mutex mu_;
  ub::CondVar rang_;
  int rings_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST_F(EventHubTest, EveryEventHasOneAuditLineAlsoWhenTheDaemonEnds) {
  CapturedLog log;
  auto hub = EventHub::Create();
  hub->OnEvent(Granted(7));
  Event tampered{EventKind::kTampered};
  tampered.text = "3 pages missing";
  hub->OnEvent(tampered);
  for (int i = 0; i < 998; ++i) hub->OnEvent(Event{EventKind::kDraining});
  hub.reset();
  std::vector<std::string> lines = log.Lines();
  ASSERT_THAT(lines, SizeIs(1000));
  EXPECT_THAT(lines[0],
              HasSubstr("audit granted seq=1 lease=7 session=2 uid=1000 pid=77 pool=host bytes=67108864 waited=3ms"));
  EXPECT_THAT(lines[1], HasSubstr("audit tampered seq=2 detail=\"3 pages missing\""));
  EXPECT_THAT(lines[999], HasSubstr("audit draining seq=1000"));
}

TEST_F(EventHubTest, AnOverflowingAuditQueueSaysHowManyLinesWereLostAndWhere) {
  AuditQueue queue;
  WatchedEvent event;
  event.event = Granted(1);
  for (size_t i = 0; i < EventHub::kAuditCapacity + 5; ++i) queue.Push(event);
  EXPECT_EQ(queue.Pop().lost_before, 0u);
  queue.Push(event);  // room again: the gap lies before this one
  for (size_t i = 1; i < EventHub::kAuditCapacity; ++i) EXPECT_EQ(queue.Pop().lost_before, 0u);
  AuditEntry after = queue.Pop();
  EXPECT_EQ(after.lost_before, 5u);
  ASSERT_TRUE(after.event);
  EXPECT_TRUE(queue.empty());

  for (size_t i = 0; i < EventHub::kAuditCapacity + 1; ++i) queue.Push(event);
  for (size_t i = 0; i < EventHub::kAuditCapacity; ++i) queue.Pop();
  EXPECT_FALSE(queue.empty());
  AuditEntry last = queue.Pop();  // the gap at the very end is told too
  EXPECT_EQ(last.lost_before, 1u);
  EXPECT_FALSE(last.event);
  CapturedLog log;
  WriteAudit(after);
  WriteAudit(last);
  EXPECT_THAT(log.Lines(), ElementsAre(HasSubstr("error audit lines lost: the log is too slow lines=5"),
                                       HasSubstr("audit granted"), HasSubstr("lines=1")));
}

TEST_F(EventHubTest, AStalledLogDoesNotStallTheBroker) {
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(pipe_fds[1], STDERR_FILENO);
  close(pipe_fds[1]);
  auto hub = EventHub::Create();
  // The pipe takes 64 KiB, then the audit thread is stuck.
  for (int i = 0; i < 100000; ++i) hub->OnEvent(Granted(1));
  auto watcher = hub->Watch(All, [] {});
  hub->OnEvent(Granted(2));
  EXPECT_EQ(watcher->Next()->event.lease, LeaseId(2));
  std::string text;
  std::thread reader([&] {
    char buffer[65536];
    for (ssize_t got; (got = read(pipe_fds[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(got));
  });
  hub.reset();
  dup2(saved, STDERR_FILENO);
  close(saved);
  reader.join();
  close(pipe_fds[0]);
  EXPECT_THAT(text, HasSubstr("audit lines lost"));
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), static_cast<ptrdiff_t>(EventHub::kAuditCapacity));
}

TEST_F(EventHubTest, SinksSeeEverythingInOrder) {
  CapturedLog log;
  auto hub = EventHub::Create();
  std::vector<uint64_t> seen;
  hub->AddSink([&](const WatchedEvent& event) { seen.push_back(event.seq); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) hub->OnEvent(Granted(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(seen, SizeIs(1000));
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);
}

TEST_F(EventHubTest, AWatcherSeesOnlyWhatItsFilterLetsThrough) {
  CapturedLog log;
  auto hub = EventHub::Create();
  auto odd = hub->Watch([](const Event& event) { return event.lease && event.lease->value() % 2 == 1; }, [] {});
  for (uint64_t i = 1; i <= 4; ++i) hub->OnEvent(Granted(i));
  EXPECT_EQ(odd->Next()->event.lease, LeaseId(1));
  std::optional<WatchedEvent> third = odd->Next();
  EXPECT_EQ(third->event.lease, LeaseId(3));
  EXPECT_EQ(third->seq, 3u);
  EXPECT_EQ(third->missed, 0u);
  EXPECT_EQ(odd->Next(), std::nullopt);
}

TEST_F(EventHubTest, ASlowWatcherLosesItsOldestEventsAndIsToldHowMany) {
  CapturedLog log;
  auto hub = EventHub::Create();
  auto slow = hub->Watch(All, [] {});
  for (uint64_t i = 1; i <= EventHub::kWatcherCapacity + 10; ++i) hub->OnEvent(Granted(i));
  std::optional<WatchedEvent> first = slow->Next();
  EXPECT_EQ(first->missed, 10u);
  EXPECT_EQ(first->event.lease, LeaseId(11));
  EXPECT_EQ(slow->Next()->missed, 0u);
}

TEST_F(EventHubTest, WakeIsCalledOncePerEmptyNextAndNoneIsForgotten) {
  CapturedLog log;
  auto hub = EventHub::Create();
  Bell bell;
  auto watcher = hub->Watch(All, bell.Ringer());
  hub->OnEvent(Granted(1));
  ASSERT_TRUE(bell.WaitFor(1));
  hub->OnEvent(Granted(2));  // not empty: no wake
  EXPECT_TRUE(watcher->Next());
  EXPECT_TRUE(watcher->Next());
  EXPECT_FALSE(watcher->Next());
  EXPECT_FALSE(watcher->Next());
  hub->OnEvent(Granted(3));
  ASSERT_TRUE(bell.WaitFor(2));
  hub->OnEvent(Granted(4));
  hub.reset();
  EXPECT_EQ(bell.rings(), 2);
  EXPECT_EQ(watcher->Next()->event.lease, LeaseId(3));  // a watcher may outlive the hub
}

TEST_F(EventHubTest, ADestroyedWatcherIsNeverWokenAgain) {
  CapturedLog log;
  auto hub = EventHub::Create();
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    std::atomic<bool> late = false;
    auto watcher = hub->Watch(All, [&, flag = alive.get()] {
      if (!*flag) late = true;
    });
    std::thread other([&] { hub->OnEvent(Granted(1)); });
    watcher.reset();
    *alive = false;
    other.join();
    EXPECT_FALSE(late);
  }
}

TEST_F(EventHubTest, AWatcherDestroyedInsideItsOwnWakeDoesNotDeadlock) {
  CapturedLog log;
  auto hub = EventHub::Create();
  absl::Notification done;
  std::unique_ptr<Watcher> watcher;
  watcher = hub->Watch(All, [&] {
    watcher.reset();
    done.Notify();
  });
  hub->OnEvent(Granted(1));
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(10)));
  hub.reset();
}

TEST_F(EventHubTest, AnIdleHubSleeps) {
  CapturedLog log;
  auto hub = EventHub::Create();
  auto watcher = hub->Watch(All, [] {});
  hub->OnEvent(Granted(1));
  // CPU time of the whole process over a stretch in which nothing happens.
  auto cpu = [] {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return absl::DurationFromTimespec(now);
  };
  usleep(50000);
  absl::Duration before = cpu();
  usleep(300000);
  EXPECT_LT(cpu() - before, absl::Milliseconds(5));
}

}  // namespace
}  // namespace ubd
