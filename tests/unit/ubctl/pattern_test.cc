#include "client/ubctl/verify/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client/ubctl/seed.h"
#include "client/ubctl/verify/plan.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kPage = 4096;

std::vector<std::byte> Pattern(uint64_t seed, uint64_t position, size_t size) {
  std::vector<std::byte> bytes(size);
  FillPattern(seed, position, absl::MakeSpan(bytes));
  return bytes;
}

TEST(Pattern, AnyPieceIsTheSamePieceOfTheWhole) {
  std::vector<std::byte> whole = Pattern(7, 0, 1000);
  for (size_t begin : {0U, 1U, 7U, 8U, 13U, 500U}) {
    for (size_t size : {0U, 1U, 7U, 8U, 9U, 333U}) {
      std::vector<std::byte> piece = Pattern(7, begin, size);
      EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<ptrdiff_t>(begin)))
          << begin << "+" << size;
    }
  }
}

TEST(Pattern, SeedsAndPositionsAreToldApart) {
  EXPECT_NE(Pattern(1, 0, 64), Pattern(2, 0, 64));
  EXPECT_NE(Pattern(1, 0, 64), Pattern(1, 4096, 64)) << "a shift by a page would go unseen";
  std::set<std::byte> values;
  for (std::byte byte : Pattern(3, 0, 65536)) values.insert(byte);
  EXPECT_EQ(values.size(), 256U);
}

TEST(Pattern, OneWrongByteIsFoundAndNamed) {
  std::vector<std::byte> right = Pattern(5, 0, 5000);
  std::vector<std::byte> wrong = right;
  EXPECT_EQ(FirstDifference(wrong, right), std::nullopt);
  wrong[4999] ^= std::byte{1};
  EXPECT_EQ(FirstDifference(wrong, right), 4999U);
  wrong[17] = ~wrong[17];
  EXPECT_EQ(FirstDifference(wrong, right), 17U);
  std::string text = DescribeDifference(wrong, right);
  EXPECT_NE(text.find("byte 17 is"), std::string::npos) << text;
  EXPECT_NE(text.find("2 bytes differ, up to byte 4999"), std::string::npos) << text;
  wrong = right;
  wrong.pop_back();
  EXPECT_EQ(FirstDifference(wrong, right), 4999U) << "a missing byte is a difference";
}

struct Range {
  uint64_t begin;
  uint64_t end;
};
// Whether ranges lie within [0, limit) and share no page.
void ExpectApart(std::vector<Range> ranges, uint64_t limit) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  uint64_t free_from = 1;  // a guard byte before the first
  for (const Range& range : ranges) {
    EXPECT_GE(range.begin, free_from);
    free_from = (range.end + kPage - 1) / kPage * kPage;
  }
  EXPECT_LT(free_from, limit) << "guard bytes after the last";
}

TEST(Plan, PiecesShareNoPageAndHaveGuardBytesAround) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    StreamPlan plan = MakePlan(seed, seed % 3, MiB(2), Bytes(512));
    ASSERT_GE(plan.pieces.size(), 4U);
    std::vector<Range> source;
    std::vector<Range> target;
    std::vector<Range> file;
    for (const Piece& piece : plan.pieces) {
      ASSERT_GT(piece.length, 0U);
      source.push_back({piece.source, piece.source + piece.length});
      target.push_back({piece.target, piece.target + piece.length});
      file.push_back({piece.file, piece.file + piece.length});
      if (piece.policy != wire::PathPolicy::kDirectOnly) continue;
      for (uint64_t value : {piece.source, piece.target, piece.file, piece.length}) EXPECT_EQ(value % 512, 0U) << seed;
    }
    ExpectApart(source, MiB(2).count() + 1);
    ExpectApart(target, MiB(2).count() + 1);
    ExpectApart(file, plan.file_bytes + 1);
  }
}

TEST(Plan, AllPoliciesAndOddLengthsComeUpInAFewRounds) {
  std::set<wire::PathPolicy> policies;
  bool odd = false;
  bool long_direct = false;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    for (const Piece& piece : MakePlan(seed, 0, MiB(2), Bytes(512)).pieces) {
      policies.insert(piece.policy);
      odd = odd || (piece.length % 2 == 1 && piece.file % 2 == 1);
      long_direct = long_direct || (piece.policy == wire::PathPolicy::kDirectOnly && piece.length > 65536);
    }
  }
  EXPECT_EQ(policies.size(), 3U);
  EXPECT_TRUE(odd);
  EXPECT_TRUE(long_direct);
}

TEST(Plan, FollowsFromSeedAndStreamAlone) {
  StreamPlan first = MakePlan(42, 0, MiB(2), Bytes(512));
  StreamPlan again = MakePlan(42, 0, MiB(2), Bytes(512));
  ASSERT_EQ(first.pieces.size(), again.pieces.size());
  for (size_t i = 0; i < first.pieces.size(); ++i) EXPECT_EQ(first.pieces[i].file, again.pieces[i].file);
  EXPECT_NE(first.source_seed, MakePlan(42, 1, MiB(2), Bytes(512)).source_seed);
  EXPECT_NE(first.source_seed, MakePlan(43, 0, MiB(2), Bytes(512)).source_seed);
}

TEST(Plan, WithoutAlignmentNothingIsDirectOnly) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const Piece& piece : MakePlan(seed, 0, MiB(2), Bytes(0)).pieces)
      EXPECT_NE(piece.policy, wire::PathPolicy::kDirectOnly);
  }
}

TEST(Seed, FitsADouble) {
  for (int i = 0; i < 100; ++i) {
    uint64_t seed = RandomSeed();
    EXPECT_EQ(static_cast<uint64_t>(static_cast<double>(seed)), seed);
  }
}

}  // namespace
}  // namespace ub::ctl
