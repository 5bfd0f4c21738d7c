#include "daemon/engine/fair_share.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace ubd {
namespace {

constexpr uint64_t kQuantum = 65536;
constexpr Uid kA(1), kB(2), kC(3);

TEST(FairShare, NobodyHasNothing) {
  FairShare<int> share(kQuantum);
  EXPECT_TRUE(share.empty());
  EXPECT_FALSE(share.Next());
  share.Add(kA, 1);
  share.Add(kA, 1);
  share.Remove(kA, 1);
  EXPECT_FALSE(share.Next()) << "added twice is there once";
  share.Remove(kA, 1);
  share.Charge(kA, 1, 5);
}

TEST(FairShare, KeepsItsTurnUntilTheQuantumIsUsed) {
  FairShare<int> share(kQuantum);
  share.Add(kA, 1);
  share.Add(kB, 2);
  for (uint64_t used = 0; used < kQuantum; used += 4096) {
    ASSERT_EQ(*share.Next(), 1);
    share.Charge(kA, 1, 10);  // counts as 4096
  }
  EXPECT_EQ(*share.Next(), 2);
}

TEST(FairShare, QueuesOfOneUidTakeTurns) {
  FairShare<int> share(kQuantum);
  std::map<int, int> served;
  for (int i = 0; i < 3; ++i) share.Add(kA, i);
  for (int i = 0; i < 300; ++i) {
    int work = *share.Next();
    ++served[work];
    share.Charge(kA, work, kQuantum);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(served[i], 100);
}

TEST(FairShare, ManyQueuesAreNoAdvantage) {
  FairShare<int> share(kQuantum);
  for (int i = 0; i < 64; ++i) share.Add(kA, i);
  share.Add(kB, 100);
  uint64_t a = 0, b = 0;
  for (int i = 0; i < 10000; ++i) {
    int work = *share.Next();
    (work == 100 ? b : a) += 8192;
    share.Charge(work == 100 ? kB : kA, work, 8192);
  }
  EXPECT_NEAR(static_cast<double>(a), static_cast<double>(b), kQuantum * 2);
}

TEST(FairShare, LargePiecesPayBack) {
  FairShare<int> share(kQuantum);
  share.Add(kA, 1);
  share.Add(kB, 2);
  uint64_t a = 0, b = 0;
  for (int i = 0; i < 20000; ++i) {
    if (*share.Next() == 1) {
      a += 1 << 20;
      share.Charge(kA, 1, 1 << 20);
    } else {
      b += 4096;
      share.Charge(kB, 2, 4096);
    }
  }
  EXPECT_NEAR(static_cast<double>(a), static_cast<double>(b), (1 << 20) + 2 * kQuantum);
}

TEST(FairShare, ADebtOutlivesAnEmptyQueue) {
  FairShare<int> share(kQuantum);
  share.Add(kA, 1);
  share.Add(kB, 2);
  ASSERT_EQ(*share.Next(), 1);
  share.Charge(kA, 1, 10 * kQuantum);
  share.Remove(kA, 1);
  share.Add(kA, 1);
  for (uint64_t used = 0; used < 8 * kQuantum; used += 8192) {
    ASSERT_EQ(*share.Next(), 2) << "after " << used << " bytes of the other";
    share.Charge(kB, 2, 8192);
  }
}

TEST(FairShare, IdlenessSavesNothing) {
  FairShare<int> share(kQuantum);
  for (int i = 0; i < 100; ++i) {
    share.Add(kA, 1);
    ASSERT_EQ(*share.Next(), 1);
    share.Charge(kA, 1, 1);
    share.Remove(kA, 1);
  }
  share.Add(kA, 1);
  share.Add(kB, 2);
  uint64_t in_a_row = 0;
  for (; *share.Next() == 1; in_a_row += 4096) share.Charge(kA, 1, 4096);
  EXPECT_LE(in_a_row, kQuantum);
}

// Random tenants come and go. While two have work all along, what they got differs by at most a quantum and the
// largest piece, each.
TEST(FairShare, SharesDifferByAQuantumAtMost) {
  constexpr uint64_t kLargest = 262'144;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    FairShare<int> share(kQuantum);
    share.Add(kA, 1);
    share.Add(kB, 2);
    std::map<int, uint64_t> got;
    std::map<int, int> waited;
    const std::map<int, Uid> uids = {{1, kA}, {2, kB}, {3, kC}};
    for (int i = 0; i < 5000; ++i) {
      if (random() % 50 == 0) share.Add(kC, 3);
      if (random() % 50 == 0) share.Remove(kC, 3);
      int work = *share.Next();
      for (int w : {1, 2}) waited[w] = w == work ? 0 : waited[w] + 1;
      ASSERT_LE(waited[1] + waited[2], 2000) << "seed " << seed << ": somebody starves";
      const uint64_t bytes = 4096 + random() % (kLargest - 4096);
      got[work] += bytes;
      share.Charge(uids.at(work), work, bytes);
      const double apart = std::abs(static_cast<double>(got[1]) - static_cast<double>(got[2]));
      ASSERT_LE(apart, 2.0 * (kQuantum + kLargest)) << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace ubd
