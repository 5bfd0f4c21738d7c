#include "proto/wire/size_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/wire/error.h"

namespace ub {
namespace {

struct Case {
  const char* text;
  uint64_t bytes;
};

TEST(SizeText, ReadsBinaryUnitsAndPlainBytes) {
  for (const Case& c : {Case{"0", 0},
                        {"1", 1},
                        {"4096", 4096},
                        {"1KiB", 1024},
                        {"64MiB", 64u << 20},
                        {"1GiB", 1u << 30},
                        {"2TiB", uint64_t{2} << 40},
                        {"18446744073709551615", UINT64_MAX},
                        {"16777215TiB", uint64_t{16777215} << 40}}) {
    EXPECT_EQ(ParseSize(c.text).value_or(Bytes(7)), Bytes(c.bytes)) << c.text;
  }
}

TEST(SizeText, RefusesWhatOthersReadInDifferentWays) {
  for (const char* text :
       {"1G",  "1GB",  "1Gi",  "1g",    "1 GiB", "1.5G", "1e9",   "0x10", "-1",  "",   "1GiBB", " 1",  "1 ",      "+1",
        "GiB", "1gib", "1GIB", "1,000", "1_000", "0b1",  "1KiB1", "1M",   "1MB", "1k", "inf",   "nan", "\xc2\xb2"}) {
    absl::StatusOr<Bytes> parsed = ParseSize(text);
    ASSERT_FALSE(parsed.ok()) << '"' << text << "\" was read as " << *parsed;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(ReasonOf(parsed.status()), Reason::kBadField) << text;
    EXPECT_EQ(DetailOf(parsed.status(), "value"), text);
  }
}

TEST(SizeText, RefusesATextWithANulInside) { EXPECT_FALSE(ParseSize(std::string_view("1\0GiB", 5)).ok()); }

TEST(SizeText, HintsAtTheUnitThatWasMeant) {
  for (const auto& [text, hint] :
       {std::pair{"1GB", "GiB"}, {"1G", "GiB"}, {"64mb", "MiB"}, {"3k", "KiB"}, {"1Ti", "TiB"}}) {
    EXPECT_THAT(std::string(ParseSize(text).status().message()), testing::HasSubstr(hint)) << text;
  }
}

TEST(SizeText, RefusesWhatDoesNotFit) {
  for (const char* text :
       {"18446744073709551616", "16777216TiB", "18014398509481984KiB", "99999999999999999999999GiB"}) {
    absl::StatusOr<Bytes> parsed = ParseSize(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), testing::HasSubstr("2^64")) << text;
  }
}

TEST(SizeText, FormatIsShortAndReadsBackTheSame) {
  EXPECT_EQ(FormatSize(MiB(64)), "64MiB");
  EXPECT_EQ(FormatSize(GiB(2)), "2GiB");
  EXPECT_EQ(FormatSize(MiB(1536)), "1536MiB");
  EXPECT_EQ(FormatSize(Bytes(4097)), "4097");
  EXPECT_EQ(FormatSize(Bytes(0)), "0");
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1023}, uint64_t{1024}, uint64_t{3} << 30, UINT64_MAX}) {
    EXPECT_EQ(ParseSize(FormatSize(Bytes(bytes))).value_or(Bytes(7)), Bytes(bytes));
  }
}

TEST(DurationText, ReadsUnitsAndRefusesNakedAndNegativeNumbers) {
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1.5s"), absl::Milliseconds(1500));
  EXPECT_EQ(*ParseDuration("2h"), absl::Hours(2));
  EXPECT_EQ(*ParseDuration("100us"), absl::Microseconds(100));
  EXPECT_EQ(*ParseDuration("0"), absl::ZeroDuration());
  for (const char* text : {"", "5", "-1s", "1x", "s", "1s ", "ten", "-inf"}) {
    absl::StatusOr<absl::Duration> parsed = ParseDuration(text);
    ASSERT_FALSE(parsed.ok()) << '"' << text << "\" was read as " << *parsed;
    EXPECT_EQ(ReasonOf(parsed.status()), Reason::kBadField) << text;
  }
}

TEST(DurationText, RefusesInfinity) {
  EXPECT_FALSE(ParseDuration("inf").ok()) << "a config with an endless deadline is a mistake, not a wish";
}

}  // namespace
}  // namespace ub
