#include "daemon/rpc/status.h"

#include <gtest/gtest.h>

#include "daemon/rpc/text.h"
#include "proto/wire/error.h"
#include "ub/v1/error.pb.h"

namespace ubd {
namespace {

ub::v1::ErrorInfo InfoOf(const grpc::Status& status) {
  ub::v1::StatusDetails details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  ub::v1::ErrorInfo info;
  if (details.details_size() == 1) {
    EXPECT_TRUE(info.ParseFromString(details.details(0).value()));
  }
  return info;
}

TEST(ToGrpcStatus, OkStaysOk) { EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok()); }

TEST(ToGrpcStatus, CarriesCodeTextReasonAndDetails) {
  grpc::Status status = ToGrpcStatus(ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kQuotaExceeded,
                                                   "too much: release some", {{"limit", "10"}, {"used", "9"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "too much: release some");
  ub::v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 8);
  EXPECT_EQ(details.message(), status.error_message());
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  ub::v1::ErrorInfo info = InfoOf(status);
  EXPECT_EQ(info.reason(), "QUOTA_EXCEEDED");
  EXPECT_EQ(info.domain(), "ub");
  EXPECT_EQ(info.metadata().at("limit"), "10");
  EXPECT_EQ(info.metadata().at("used"), "9");
}

TEST(ToGrpcStatus, EveryCodeKeepsItsNumber) {
  for (int code = 1; code <= 16; ++code) {
    EXPECT_EQ(ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "x")).error_code(), code);
  }
}

TEST(ToGrpcStatus, LongTextsFitIntoAHeaderBlock) {
  ub::ErrorDetails details;
  for (int i = 0; i < 100; ++i) details.emplace_back("key" + std::to_string(i), std::string(5000, 'v'));
  grpc::Status status = ToGrpcStatus(
      ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kKernelRefused, std::string(100000, 'x'), details));
  // Base64 makes the details a third larger.
  EXPECT_LT(status.error_message().size() + status.error_details().size() * 4 / 3, 8000u);
}

TEST(ToGrpcStatus, BytesThatAreNoTextDoNotMakeTheDetailsUnreadable) {
  grpc::Status status = ToGrpcStatus(
      ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kKernelRefused, "bad \xff byte", {{"name", "\xc3\x28"}}));
  EXPECT_EQ(InfoOf(status).metadata().at("name"), "?(");
  EXPECT_EQ(status.error_message(), "bad ? byte");
}

TEST(CleanText, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(CleanText("plain"), "plain");
  EXPECT_EQ(CleanText("größe €"), "größe €");
  EXPECT_EQ(CleanText("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(CleanText("a\nb\x7f"), "a?b?");
  EXPECT_EQ(CleanText("\xc0\x80"), "??");            // overlong
  EXPECT_EQ(CleanText("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(CleanText("\xf4\x90\x80\x80"), "????");  // beyond the last character
  EXPECT_EQ(CleanText("x\xe2\x82"), "x??");          // cut short
}

}  // namespace
}  // namespace ubd
