#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/session/server.h"
#include "proto/wire/lease_word.h"
#include "proto/wire/unique_fd.h"
#include "tests/unit/session/harness.h"

namespace ubd {
namespace {

using ub::UniqueFd;
using ub::wire::LeasePage;
using ub::wire::PackWord;
using ub::wire::WordState;

constexpr SessionId kSession{5};

class LeasePagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = pages->OpenPage(kSession);
    ASSERT_TRUE(opened.ok()) << opened.status();
    fd = *std::move(opened);
    void* memory = ::mmap(nullptr, sizeof(LeasePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    page = static_cast<LeasePage*>(memory);
  }
  void TearDown() override { ::munmap(page, sizeof(LeasePage)); }

  std::unique_ptr<LeasePages> pages = LeasePages::Create();
  UniqueFd fd;
  LeasePage* page = nullptr;
};

TEST_F(LeasePagesTest, WordsDoNotFollowTheProtocol) {
  EXPECT_EQ(page->header.magic, ub::wire::kLeasePageMagic);
  auto word = pages->Assign(kSession, Generation(9));
  ASSERT_TRUE(word.has_value());
  EXPECT_FALSE(pages->IsIdle(kSession, *word, Generation(9)));
  EXPECT_FALSE(pages->TryRecall(kSession, *word, Generation(9))) << "busy";
  ub::wire::Idle(page->words[*word], 9);
  EXPECT_TRUE(pages->IsIdle(kSession, *word, Generation(9)));
  EXPECT_TRUE(ub::wire::TryTakeBack(page->words[*word], 9));
  EXPECT_FALSE(pages->TryRecall(kSession, *word, Generation(9)));
  ub::wire::Idle(page->words[*word], 9);
  EXPECT_TRUE(pages->TryRecall(kSession, *word, Generation(9)));
  EXPECT_FALSE(ub::wire::TryTakeBack(page->words[*word], 9));
  pages->Drop(kSession, *word, Generation(9));
  EXPECT_EQ(ub::wire::StateOfWord(page->words[*word].word.load()), WordState::kRecalled);
}

TEST_F(LeasePagesTest, StaleGenerationMatches) {
  auto word = *pages->Assign(kSession, Generation(1));
  pages->Drop(kSession, word, Generation(1));
  ASSERT_EQ(pages->Assign(kSession, Generation(2)), word);
  ub::wire::Idle(page->words[word], 1);  // a lingering client of the old lease
  EXPECT_FALSE(pages->IsIdle(kSession, word, Generation(2)));
  EXPECT_FALSE(pages->TryRecall(kSession, word, Generation(2)));
  ub::wire::Idle(page->words[word], 2);
  pages->Drop(kSession, word, Generation(1));
  EXPECT_TRUE(pages->TryRecall(kSession, word, Generation(2))) << "a late Drop of the old lease took the word";
}

TEST_F(LeasePagesTest, FullPageOverflows) {
  for (uint32_t i = 0; i < ub::wire::kWordsPerSession; ++i) ASSERT_EQ(pages->Assign(kSession, Generation(i + 1)), i);
  EXPECT_FALSE(pages->Assign(kSession, Generation(1000)).has_value());
  pages->Drop(kSession, 17, Generation(18));
  EXPECT_EQ(pages->Assign(kSession, Generation(1001)), 17u);
}

TEST_F(LeasePagesTest, UnknownSessionOrWordIsTouched) {
  EXPECT_FALSE(pages->Assign(SessionId(77), Generation(1)).has_value());
  EXPECT_FALSE(pages->TryRecall(SessionId(77), 0, Generation(1)));
  EXPECT_FALSE(pages->TryRecall(kSession, 0xffffffff, Generation(1)));
  EXPECT_FALSE(pages->IsIdle(kSession, 255, Generation(0)));
  pages->Drop(kSession, 300, Generation(1));
}

TEST_F(LeasePagesTest, ClientMayChangeThePagesSizeOrSeals) {
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  EXPECT_EQ(::ftruncate(fd.get(), 1 << 20), -1);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
  struct stat info = {};
  ASSERT_EQ(::fstat(fd.get(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LeasePagesTest, PunchedHoleKillsTheDaemon) {
  auto word = *pages->Assign(kSession, Generation(3));
  ub::wire::Idle(page->words[word], 3);
  ASSERT_EQ(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof(LeasePage)), 0);
  EXPECT_FALSE(pages->IsIdle(kSession, word, Generation(3)));
  EXPECT_FALSE(pages->TryRecall(kSession, word, Generation(3)));
  pages->SetPressure(true);
  EXPECT_EQ(page->header.pressure.load(), 1u);
  pages->Drop(kSession, word, Generation(3));
  EXPECT_EQ(pages->Assign(kSession, Generation(4)), word);
}

TEST_F(LeasePagesTest, NonsenseInAWordGivesAnothersLeaseAway) {
  auto other_fd = pages->OpenPage(SessionId(6));
  ASSERT_TRUE(other_fd.ok());
  auto mine = *pages->Assign(kSession, Generation(10));
  auto theirs = *pages->Assign(SessionId(6), Generation(11));
  for (uint64_t value : {~uint64_t{0}, uint64_t{0}, PackWord(WordState::kIdle, 11), PackWord(WordState::kRecalled, 10),
                         uint64_t{0xff}}) {
    for (auto& word : page->words) word.word.store(value);
    EXPECT_FALSE(pages->TryRecall(kSession, mine, Generation(10)));
    EXPECT_FALSE(pages->TryRecall(SessionId(6), theirs, Generation(11)));
  }
}

TEST_F(LeasePagesTest, ClientsShareAPage) {
  auto other = pages->OpenPage(SessionId(6));
  ASSERT_TRUE(other.ok());
  struct stat a = {}, b = {};
  ASSERT_EQ(::fstat(fd.get(), &a), 0);
  ASSERT_EQ(::fstat(other->get(), &b), 0);
  EXPECT_NE(a.st_ino, b.st_ino);
}

TEST_F(LeasePagesTest, PressureIsNotSeenByAPageThatGetsItsFirstWordLater) {
  pages->SetPressure(true);
  EXPECT_TRUE(pages->Assign(kSession, Generation(1)).has_value());
  EXPECT_EQ(page->header.pressure.load(), 1u);
  pages->SetPressure(false);
  EXPECT_EQ(page->header.pressure.load(), 0u);
}

TEST_F(LeasePagesTest, TakeBacksBelieveNonsense) {
  page->header.take_backs.store(100);
  EXPECT_EQ(pages->TakeBacks(), 100u);
  page->header.take_backs.store(7);  // went back
  EXPECT_EQ(pages->TakeBacks(), 100u);
  page->header.take_backs.store(10);
  EXPECT_EQ(pages->TakeBacks(), 103u);
  page->header.take_backs.store(~uint64_t{0});  // leapt
  EXPECT_EQ(pages->TakeBacks(), 103u);
  page->header.take_backs.store(5);
  EXPECT_EQ(pages->TakeBacks(), 103u);
  page->header.take_backs.store(6);
  pages->ClosePage(kSession);
  EXPECT_EQ(pages->TakeBacks(), 104u) << "past sessions included";
}

TEST_F(LeasePagesTest, PageDiesUnderItsClientOrTheDaemon) {
  auto word = *pages->Assign(kSession, Generation(1));
  pages->ClosePage(kSession);
  page->words[word].word.store(1);  // still mapped here
  EXPECT_FALSE(pages->TryRecall(kSession, word, Generation(1)));
  pages->Drop(kSession, word, Generation(1));
  pages->ClosePage(kSession);
}

TEST_F(LeasePagesTest, OtherUserOpensThePageThroughProc) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
  ubd::testing::Child child([](const ubd::testing::Child::Channel&) {
    auto own = LeasePages::Create()->OpenPage(SessionId(1));
    if (!own.ok() || !ubd::testing::BecomeUser(20001, 20001, 20001)) return 99;
    return ::open(absl::StrCat("/proc/self/fd/", own->get()).c_str(), O_RDWR | O_CLOEXEC) < 0 && errno == EACCES ? 0
                                                                                                                 : 1;
  });
  EXPECT_EQ(child.Wait(), 0);
}

TEST_F(LeasePagesTest, RecallAndTakeBackBothWin) {
  constexpr int kRounds = 20000;
  auto word = *pages->Assign(kSession, Generation(1));
  std::atomic<int> round{0};
  int taken = 0, recalled = 0, both = 0;
  std::atomic<bool> client_won{false};
  std::thread client([&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (round.load() < i) std::this_thread::yield();
      client_won.store(ub::wire::TryTakeBack(page->words[word], 1));
      round.store(-i);
      while (round.load() == -i) std::this_thread::yield();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    ub::wire::Idle(page->words[word], 1);
    round.store(i);
    const bool daemon_won = pages->TryRecall(kSession, word, Generation(1));
    while (round.load() != -i) std::this_thread::yield();
    taken += client_won.load();
    recalled += daemon_won;
    both += client_won.load() == daemon_won;
    if (i < kRounds) round.store(0);
  }
  round.store(kRounds + 1);
  client.join();
  EXPECT_EQ(both, 0) << "exactly one side gets it";
  EXPECT_EQ(taken + recalled, kRounds);
}

}  // namespace
}  // namespace ubd
