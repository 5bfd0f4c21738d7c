#include "daemon/session/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    a.reset(fds[0]);
    b.reset(fds[1]);
  }
  ub::UniqueFd a, b;
};

class EventLoopTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
};

TEST_F(EventLoopTest, EventOfAClosedDescriptorReachesItsSuccessor) {
  // Two readable sockets in one round; the first handler to run closes the other's descriptor, and a new one takes its
  // number.
  auto one = std::make_unique<Pair>(), two = std::make_unique<Pair>();
  ASSERT_EQ(::write(one->b.get(), "x", 1), 1);
  ASSERT_EQ(::write(two->b.get(), "x", 1), 1);
  ub::UniqueFd heir_peer, heir;
  EventLoop::WatchId watch_one = 0, watch_two = 0;
  int stale = 0, ran = 0;
  auto replace = [&](ub::UniqueFd& victim, EventLoop::WatchId& watch) {
    loop->Unwatch(watch);
    Pair fresh;
    const int number = victim.get();
    victim.reset();
    heir.reset(::dup2(fresh.a.get(), number));
    heir_peer = std::move(fresh.b);
    ASSERT_TRUE(loop->Watch(heir.get(), EPOLLIN, [&](uint32_t) { ++stale; }).ok());
    loop->RunAfter(absl::Milliseconds(50), [&] { loop->Quit(); });
  };
  watch_one = *loop->Watch(one->a.get(), EPOLLIN, [&](uint32_t) {
    if (++ran > 1) return;
    loop->Unwatch(watch_one);
    replace(two->a, watch_two);
  });
  watch_two = *loop->Watch(two->a.get(), EPOLLIN, [&](uint32_t) {
    if (++ran > 1) return;
    loop->Unwatch(watch_two);
    replace(one->a, watch_one);
  });
  loop->Run();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(stale, 0);
}

TEST_F(EventLoopTest, TimersRunOutOfOrderOrAfterCancel) {
  std::vector<int> order;
  loop->RunAfter(absl::Milliseconds(30), [&] { loop->Quit(); });
  loop->RunAfter(absl::Milliseconds(20), [&] { order.push_back(2); });
  auto cancelled = loop->RunAfter(absl::Milliseconds(15), [&] { order.push_back(9); });
  loop->RunAfter(absl::Milliseconds(10), [&] { order.push_back(1); });
  loop->Post([&] { order.push_back(0); });
  loop->Cancel(cancelled);
  loop->Cancel(cancelled);
  loop->Run();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST_F(EventLoopTest, TimerRunsEarly) {
  const MonoTime start = loop->Now();
  MonoTime ran;
  loop->RunAfter(absl::Microseconds(1500), [&] {
    ran = loop->Now();
    loop->Quit();
  });
  loop->Run();
  EXPECT_GE(ran - start, absl::Microseconds(1500));
}

TEST_F(EventLoopTest, IdleLoopWakesUp) {
  std::thread runner([&] { loop->Run(); });
  absl::SleepFor(absl::Milliseconds(50));
  const uint64_t before = loop->wakeups();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(loop->wakeups(), before);
  loop->Quit();
  runner.join();
}

TEST_F(EventLoopTest, FarTimerSpinsTheLoop) {
  loop->RunAfter(absl::Milliseconds(200), [&] { loop->Quit(); });
  loop->Run();
  EXPECT_LE(loop->wakeups(), 3u);
}

TEST_F(EventLoopTest, WorkPostedFromOtherThreadsIsLost) {
  constexpr int kThreads = 4, kEach = 2000;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        loop->Post([&] {
          if (done.fetch_add(1) + 1 == kThreads * kEach) loop->Quit();
        });
      }
    });
  }
  loop->Run();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done.load(), kThreads * kEach);
}

TEST_F(EventLoopTest, SelfPostingWorkStarvesSockets) {
  Pair pair;
  ASSERT_EQ(::write(pair.b.get(), "x", 1), 1);
  std::function<void()> again = [&] { loop->Post(again); };
  loop->Post(again);
  ASSERT_TRUE(loop->Watch(pair.a.get(), EPOLLIN, [&](uint32_t) { loop->Quit(); }).ok());
  loop->Run();
}

TEST_F(EventLoopTest, InterruptBeforeRunIsLost) {
  int interrupts = 0;
  loop->OnInterrupt([&] {
    ++interrupts;
    loop->Quit();
  });
  loop->Interrupt();
  loop->Interrupt();
  loop->Run();
  EXPECT_EQ(interrupts, 1);
}

TEST_F(EventLoopTest, RearmedEdgeMissesWhatIsThereAlready) {
  Pair pair;
  int seen = 0;
  auto watch = *loop->Watch(pair.a.get(), EPOLLIN, [&](uint32_t events) {
    if ((events & EPOLLOUT) != 0) ++seen;
  });
  loop->Rearm(watch, EPOLLOUT | EPOLLET);
  loop->RunAfter(absl::Milliseconds(50), [&] { loop->Quit(); });
  loop->Run();
  EXPECT_EQ(seen, 1) << "state of now reported once, then only edges";
}

}  // namespace
}  // namespace ubd
