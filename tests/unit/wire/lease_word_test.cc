#include "proto/wire/lease_word.h"

#include <gtest/gtest.h>

#include <thread>

namespace ub::wire {
namespace {

TEST(LeaseWordTest, OnlyOneOfTakeBackAndRecallWins) {
  LeaseWord word{};
  Idle(word, 5);
  EXPECT_TRUE(TryTakeBack(word, 5));
  EXPECT_FALSE(TryRecall(word, 5)) << "the client uses it";
  EXPECT_FALSE(TryTakeBack(word, 5)) << "already taken";
  Idle(word, 5);
  EXPECT_TRUE(TryRecall(word, 5));
  EXPECT_FALSE(TryTakeBack(word, 5)) << "it was recalled";
  EXPECT_FALSE(TryRecall(word, 5));
  EXPECT_EQ(StateOfWord(word.word.load()), WordState::kRecalled);
}

TEST(LeaseWordTest, FormerLeasesGenerationNeverMatches) {
  LeaseWord word{};
  Idle(word, 6);
  EXPECT_FALSE(TryTakeBack(word, 5));
  EXPECT_FALSE(TryRecall(word, 5));
  EXPECT_TRUE(TryRecall(word, 6));
}

TEST(LeaseWordTest, GenerationAndStateDoNotMix) {
  constexpr uint64_t kLargest = (uint64_t{1} << 56) - 1;
  for (uint64_t generation : {uint64_t{0}, uint64_t{1}, uint64_t{255}, uint64_t{256}, kLargest}) {
    for (WordState state : {WordState::kUnused, WordState::kBusy, WordState::kIdle, WordState::kRecalled}) {
      uint64_t word = PackWord(state, generation);
      EXPECT_EQ(StateOfWord(word), state);
      EXPECT_EQ(word >> 8, generation);
    }
  }
}

// A client idles and looks at the pressure; a daemon raises the pressure and looks at the word. Never do both miss the
// other.
TEST(LeaseWordTest, IdledUnderPressureIsSeenByOneSide) {
  LeasePage page{};
  std::atomic<int> turn = 0;
  constexpr int kRounds = 20000;
  bool client_saw = false;
  bool daemon_saw = false;
  auto meet = [&turn](int at) {
    turn.fetch_add(1);
    while (turn.load() < 2 * at) std::this_thread::yield();
  };
  std::thread daemon([&] {
    for (int i = 1; i <= kRounds; ++i) {
      meet(2 * i - 1);
      page.header.pressure.store(1, std::memory_order_seq_cst);
      daemon_saw = TryRecall(page.words[0], static_cast<uint64_t>(i));
      meet(2 * i);
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    page.words[0].word = PackWord(WordState::kBusy, static_cast<uint64_t>(i));
    page.header.pressure = 0;
    meet(2 * i - 1);
    Idle(page.words[0], static_cast<uint64_t>(i));
    client_saw = page.header.pressure.load(std::memory_order_seq_cst) != 0;
    meet(2 * i);
    if (!client_saw && !daemon_saw) ADD_FAILURE() << "round " << i;
  }
  daemon.join();
}

}  // namespace
}  // namespace ub::wire
