#include "client/ubctl/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ub::ctl {
namespace {

TopSnapshot Busy() {
  TopSnapshot snapshot;
  snapshot.mutable_status()->set_version("0.1.0");
  snapshot.mutable_status()->set_state("serving");
  v1::Pool& pool = *snapshot.add_pools();
  pool.set_name("host");
  pool.set_block_bytes(uint64_t{64} << 20);
  pool.set_blocks_total(8);
  pool.set_blocks_free(2);
  pool.set_blocks_leased(6);
  for (int i = 0; i < 100; ++i) snapshot.add_sessions()->set_name("job\x1b[31m");
  return snapshot;
}

TEST(TopView, NeverTallerOrWiderThanTheTerminal) {
  for (size_t rows : {1, 3, 6, 10, 24}) {
    std::string text = TopText(Busy(), {40, rows, false});
    EXPECT_LE(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), rows);
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find('\n', at);
      EXPECT_LE(end - at, 40U);
      at = end + 1;
    }
  }
}

TEST(TopView, PlainOutputHasNoEscapesAtAll) {
  EXPECT_EQ(TopText(Busy(), {}).find('\x1b'), std::string::npos);
  EXPECT_NE(TopText(Busy(), {80, 24, true}).find("\x1b[1m"), std::string::npos);
}

TEST(TopView, RatesThatWereNotMeasuredYetAreNoZero) {
  TopSnapshot snapshot = Busy();
  EXPECT_NE(TopText(snapshot, {}).find("granted -"), std::string::npos);
  snapshot.set_granted_per_s(0);
  EXPECT_NE(TopText(snapshot, {}).find("granted 0.0/s"), std::string::npos);
}

TEST(TopView, PoolUseIsDrawn) {
  EXPECT_NE(TopText(Busy(), {}).find("[###############.....] 75%"), std::string::npos);
  EXPECT_NE(TopText(Busy(), {}).find("384 MiB"), std::string::npos);
}

TEST(TopView, EmptyPoolDoesNotDivideByZero) {
  TopSnapshot snapshot;
  snapshot.add_pools()->set_name("empty");
  EXPECT_NE(TopText(snapshot, {}).find("0%"), std::string::npos);
}

}  // namespace
}  // namespace ub::ctl
