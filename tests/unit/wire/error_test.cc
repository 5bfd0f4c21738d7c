#include "proto/wire/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace ub {
namespace {

TEST(Error, ReasonAndDetailsComeBack) {
  ErrorDetails details = {{"free", "0"}, {"asked", "4096"}, {"text", "spaces, \xc3\xa4 and = signs"}, {"empty", ""}};
  absl::Status status = MakeError(absl::StatusCode::kResourceExhausted, Reason::kPoolEmpty, "no memory", details);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "no memory");
  EXPECT_EQ(ReasonOf(status), Reason::kPoolEmpty);
  EXPECT_EQ(DetailsOf(status), details);
  EXPECT_EQ(DetailOf(status, "asked"), "4096");
  EXPECT_EQ(DetailOf(status, "empty"), "");
  EXPECT_EQ(DetailOf(status, "absent"), std::nullopt);
}

TEST(Error, SurvivesACopyAndTellsErrorsApart) {
  absl::Status a = MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchLease, "x", {{"a", "1"}});
  absl::Status copy = a;
  EXPECT_EQ(copy, a);
  EXPECT_NE(a, MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchLease, "x", {{"a", "2"}}));
  EXPECT_NE(a, MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchPool, "x", {{"a", "1"}}));
}

TEST(Error, OfOthersHasNoReasonAndNoDetails) {
  for (const absl::Status& status : {absl::OkStatus(), absl::InternalError("x")}) {
    EXPECT_EQ(ReasonOf(status), Reason::kNone);
    EXPECT_TRUE(DetailsOf(status).empty());
  }
}

TEST(Error, NulInADetailCannotForgeAnotherDetail) {
  std::string evil("1\0limit\0999", 11);
  absl::Status status =
      MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField, "bad", {{"value", evil}, {"limit", "5"}});
  EXPECT_EQ(DetailOf(status, "limit"), "5");
  EXPECT_EQ(DetailsOf(status).size(), 2u);
}

TEST(Error, EveryReasonHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 1; i <= static_cast<int>(Reason::kMalformedFrame); ++i) {
    auto reason = static_cast<Reason>(i);
    std::string_view name = ReasonName(reason);
    EXPECT_FALSE(name.empty()) << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(ReasonFromName(name), reason);
    EXPECT_EQ(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), std::string_view::npos) << name;
  }
  EXPECT_EQ(ReasonName(Reason::kNone), "");
  EXPECT_EQ(ReasonFromName(""), Reason::kNone);
  EXPECT_EQ(ReasonFromName("FROM_THE_FUTURE"), Reason::kNone);
}

TEST(Error, OfASystemCallKeepsItsNumberAndPicksTheCode) {
  absl::Status status = ErrnoError(EMFILE, "memfd_create for pool p");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kKernelRefused);
  EXPECT_EQ(DetailOf(status, "errno"), std::to_string(EMFILE));
  EXPECT_EQ(DetailOf(status, "call"), "memfd_create for pool p");
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("memfd_create for pool p: "));
  EXPECT_EQ(ErrnoError(EACCES, "open").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoError(ENOENT, "open").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoError(EPIPE, "send").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrnoError(EIO, "read").code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace ub
