#include "daemon/rpc/file_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace ubd {
namespace {

// Something that happens once.
class Gate {
 public:
  void Open() {
    ub::MutexLock lock(&mu_);
    open_ = true;
    changed_.SignalAll();
  }
  void Pass() {
    ub::MutexLock lock(&mu_);
    while (!open_) changed_.Wait(&mu_);
  }

 private:
  ub::Mutex mu_;
  ub::CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

TEST(FileWorkers, OneUsersStuckJobLeavesTheOthersServed) {
  Gate stuck, started, served, after;
  FileWorkers workers;
  ASSERT_TRUE(workers.Run(Uid(1), [&] {
    started.Open();
    stuck.Pass();
  }));
  std::atomic<bool> overtook{false};
  ASSERT_TRUE(workers.Run(Uid(1), [&] {
    overtook.store(true);
    after.Open();
  }));
  started.Pass();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(workers.Run(Uid(2), [] {}));
  ASSERT_TRUE(workers.Run(Uid(3), [&] { served.Open(); }));
  served.Pass();
  EXPECT_FALSE(overtook.load()) << "one of a user at a time";
  stuck.Open();
  after.Pass();
}

TEST(FileWorkers, UsersTakeTurns) {
  Gate go, done;
  std::vector<uint32_t> order;
  ub::Mutex mu;
  {
    FileWorkers workers;
    // Both threads are held by users of their own until everything is queued.
    Gate first, second;
    ASSERT_TRUE(workers.Run(Uid(8), [&] {
      first.Open();
      go.Pass();
    }));
    ASSERT_TRUE(workers.Run(Uid(9), [&] {
      second.Open();
      done.Pass();
    }));
    first.Pass();
    second.Pass();
    auto note = [&](uint32_t uid) {
      return [&mu, &order, uid] {
        ub::MutexLock lock(&mu);
        order.push_back(uid);
      };
    };
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(workers.Run(Uid(1), note(1)));
    ASSERT_TRUE(workers.Run(Uid(2), note(2)));
    go.Open();
    Gate last;
    ASSERT_TRUE(workers.Run(Uid(1), [&] { last.Open(); }));
    last.Pass();
    done.Open();
    ASSERT_TRUE(workers.Stop(absl::Seconds(10)));
  }
  ub::MutexLock lock(&mu);
  ASSERT_EQ(order.size(), 21u);
  EXPECT_EQ(order[1], 2u) << "behind one of the other user's, not behind twenty";
}

TEST(FileWorkers, QueueIsBoundedPerUserAndInAll) {
  Gate go, first, second;
  FileWorkers workers;
  ASSERT_TRUE(workers.Run(Uid(1), [&] {
    first.Open();
    go.Pass();
  }));
  ASSERT_TRUE(workers.Run(Uid(2), [&] {
    second.Open();
    go.Pass();
  }));
  first.Pass();
  second.Pass();
  size_t taken = 0;
  while (workers.Run(Uid(1), [] {})) ++taken;
  EXPECT_EQ(taken, FileWorkers::kMostPerUid);
  for (uint32_t uid = 100; uid < 10000; ++uid) {
    if (workers.Run(Uid(uid), [] {})) ++taken;
  }
  EXPECT_EQ(taken, FileWorkers::kMost);
  go.Open();
}

TEST(FileWorkers, StopDoesNotWaitForAStuckJob) {
  auto go = std::make_shared<Gate>();
  auto started = std::make_shared<Gate>();
  auto over = std::make_shared<Gate>();
  auto workers = std::make_unique<FileWorkers>();
  bool dropped_ran = false;
  ASSERT_TRUE(workers->Run(Uid(1), [go, started, over] {
    started->Open();
    go->Pass();
    over->Open();
  }));
  started->Pass();
  ASSERT_TRUE(workers->Run(Uid(1), [&dropped_ran] { dropped_ran = true; }));
  EXPECT_FALSE(workers->Stop(absl::Milliseconds(10)));
  EXPECT_FALSE(workers->Run(Uid(2), [] {}));
  workers = nullptr;
  go->Open();  // it ends after its owner, and harms nothing
  over->Pass();
  EXPECT_FALSE(dropped_ran);
}

}  // namespace
}  // namespace ubd
