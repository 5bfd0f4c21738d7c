#include "client/ubctl/bench/bare_pair.h"

#include <gtest/gtest.h>

#include "client/ubctl/bench/processor.h"

namespace ub::ctl {
namespace {

TEST(Processors, PartnerIsWhereTheDaemonIsButNeverOnesOwn) {
  EXPECT_FALSE(ChoosePair({0}, std::nullopt).has_value());
  auto unknown = ChoosePair({0, 1}, std::nullopt);
  EXPECT_EQ((std::pair{unknown->own, unknown->partner}), (std::pair{0, 1}));
  auto first = ChoosePair({2, 5, 7}, 2);
  EXPECT_EQ((std::pair{first->own, first->partner}), (std::pair{5, 2}));
  auto last = ChoosePair({2, 5, 7}, 7);
  EXPECT_EQ((std::pair{last->own, last->partner}), (std::pair{2, 7}));
  auto elsewhere = ChoosePair({2, 5}, 9);
  EXPECT_EQ((std::pair{elsewhere->own, elsewhere->partner}), (std::pair{2, 5}));
}

// Wrong counting in either would hang or give nonsense.
TEST(BarePair, SlicesEndAndGiveATime) {
  auto pair = ChoosePair(AllowedProcessors(), std::nullopt);
  if (!pair.has_value()) GTEST_SKIP() << "one processor";
  PingPong ping_pong(pair->partner);
  BareRing ring(pair->partner);
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(ping_pong.Slice(200), 0U);
    EXPECT_GT(ring.Slice(20), 0.0);
  }
}

}  // namespace
}  // namespace ub::ctl
