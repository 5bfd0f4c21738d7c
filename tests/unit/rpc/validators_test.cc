#include "daemon/rpc/validators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr SessionId kSession{7};

// INVALID_ARGUMENT for this reason and field, with the field named in the text.
void ExpectRefused(const absl::Status& status, ub::Reason reason, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(ub::ReasonOf(status), reason) << status;
  EXPECT_EQ(ub::DetailOf(status, "field"), field) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(field));
}

ub::v1::AcquireRequest GoodAcquire() {
  ub::v1::AcquireRequest request;
  request.set_bytes(4096);
  request.set_request_id(1);
  return request;
}

TEST(CheckAcquire, TakesEveryFieldOver) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.set_pool("fast-0_a.b");
  request.set_wait_ms(250);
  request.set_ttl_ms(60000);
  request.set_cacheable(true);
  auto checked = CheckAcquire(request, kSession);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->session, kSession);
  EXPECT_EQ(checked->pool, "fast-0_a.b");
  EXPECT_EQ(checked->bytes, Bytes(4096));
  EXPECT_EQ(checked->request, RequestId(1));
  EXPECT_EQ(checked->wait, absl::Milliseconds(250));
  EXPECT_EQ(checked->ttl, absl::Seconds(60));
  EXPECT_TRUE(checked->cacheable);
}

TEST(CheckAcquire, AbsentSizeIsNotZero) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.clear_bytes();
  ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kMissingField, "bytes");
}

TEST(CheckAcquire, ZeroSizeIsRefused) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.set_bytes(0);
  ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kBadField, "bytes");
}

TEST(CheckAcquire, AbsentRequestIdIsNotZero) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.clear_request_id();
  ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kMissingField, "request_id");
}

TEST(CheckAcquire, RequestIdZeroIsAnIdLikeAnyOther) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.set_request_id(0);
  EXPECT_TRUE(CheckAcquire(request, kSession).ok());
}

TEST(CheckAcquire, AbsentWaitMeansNoWait) {
  auto checked = CheckAcquire(GoodAcquire(), kSession);
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->wait, absl::ZeroDuration());
  EXPECT_EQ(checked->ttl, std::nullopt);
}

TEST(CheckAcquire, WaitThatNoDurationHoldsIsRefused) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.set_wait_ms(std::numeric_limits<uint64_t>::max());
  ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kBadField, "wait_ms");
}

TEST(CheckAcquire, TtlOfZeroIsNotALeaseWithoutEnd) {
  ub::v1::AcquireRequest request = GoodAcquire();
  request.set_ttl_ms(0);
  ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kBadField, "ttl_ms");
  request.set_ttl_ms(uint64_t{1} << 63);
  ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kBadField, "ttl_ms");
}

TEST(CheckAcquire, PoolNamesWithOddBytesOrLengthAreRefused) {
  for (const std::string& name : {std::string("a b"), std::string("a\nb"), std::string("ü"), std::string("a\0b", 3),
                                  std::string("../x"), std::string(65, 'a')}) {
    ub::v1::AcquireRequest request = GoodAcquire();
    request.set_pool(name);
    ExpectRefused(CheckAcquire(request, kSession).status(), ub::Reason::kBadField, "pool");
  }
}

TEST(CheckRelease, NeedsExactlyOneTarget) {
  ub::v1::ReleaseRequest request;
  ExpectRefused(CheckRelease(request).status(), ub::Reason::kMissingField, "lease");
  request.set_lease(5);
  auto lease = CheckRelease(request);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(std::get<LeaseId>(*lease), LeaseId(5));
  request.set_request_id(6);
  ExpectRefused(CheckRelease(request).status(), ub::Reason::kBadField, "request_id");
  request.clear_lease();
  auto by_request = CheckRelease(request);
  ASSERT_TRUE(by_request.ok());
  EXPECT_EQ(std::get<RequestId>(*by_request), RequestId(6));
}

TEST(CheckRelease, LeaseZeroIsNoLease) {
  ub::v1::ReleaseRequest request;
  request.set_lease(0);
  ExpectRefused(CheckRelease(request).status(), ub::Reason::kBadField, "lease");
}

ub::v1::ShareRequest GoodShare() {
  ub::v1::ShareRequest request;
  request.set_lease(3);
  request.set_access(ub::v1::READ_ONLY);
  request.set_uid(1000);
  return request;
}

TEST(CheckShare, TakesEveryFieldOver) {
  ub::v1::ShareRequest request = GoodShare();
  request.set_ticket_ttl_ms(500);
  auto checked = CheckShare(request, kSession);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->session, kSession);
  EXPECT_EQ(checked->lease, LeaseId(3));
  EXPECT_EQ(checked->access, Access::kReadOnly);
  EXPECT_EQ(checked->uid, Uid(1000));
  EXPECT_EQ(checked->ticket_ttl, absl::Milliseconds(500));
}

TEST(CheckShare, AbsentUidIsNotRoot) {
  ub::v1::ShareRequest request = GoodShare();
  request.clear_uid();
  ExpectRefused(CheckShare(request, kSession).status(), ub::Reason::kMissingField, "uid");
}

TEST(CheckShare, AccessMustBeSaidAndKnown) {
  ub::v1::ShareRequest request = GoodShare();
  request.clear_access();
  ExpectRefused(CheckShare(request, kSession).status(), ub::Reason::kMissingField, "access");
  for (int unknown : {0, 3, 17, -1}) {
    request.set_access(static_cast<ub::v1::Access>(unknown));
    ExpectRefused(CheckShare(request, kSession).status(), ub::Reason::kBadField, "access");
  }
}

TEST(CheckShare, NobodysUidAndEndlessOrZeroTicketsAreRefused) {
  ub::v1::ShareRequest request = GoodShare();
  request.set_uid(0xffffffff);
  ExpectRefused(CheckShare(request, kSession).status(), ub::Reason::kBadField, "uid");
  request = GoodShare();
  request.set_ticket_ttl_ms(0);
  ExpectRefused(CheckShare(request, kSession).status(), ub::Reason::kBadField, "ticket_ttl_ms");
  request.set_ticket_ttl_ms(std::numeric_limits<uint64_t>::max());
  ExpectRefused(CheckShare(request, kSession).status(), ub::Reason::kBadField, "ticket_ttl_ms");
}

TEST(CheckAttach, TicketHasSixteenBytes) {
  ub::v1::AttachRequest request;
  ExpectRefused(CheckAttach(request).status(), ub::Reason::kMissingField, "ticket");
  for (size_t size : {0, 15, 17, 4096}) {
    request.set_ticket(std::string(size, 'x'));
    ExpectRefused(CheckAttach(request).status(), ub::Reason::kBadField, "ticket");
  }
  request.set_ticket(std::string("0123456789\0abcde", 16));
  auto ticket = CheckAttach(request);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ((*ticket)[10], 0);
  EXPECT_EQ((*ticket)[15], 'e');
}

TEST(CheckRevoke, ReasonIsBoundedAndPrintable) {
  ub::v1::RevokeLeaseRequest request;
  ExpectRefused(CheckRevoke(request).status(), ub::Reason::kMissingField, "lease");
  request.set_lease(9);
  ASSERT_TRUE(CheckRevoke(request).ok());
  EXPECT_FALSE(CheckRevoke(request)->why.empty());
  request.set_reason("one\ntwo\x1b[31m");
  ASSERT_TRUE(CheckRevoke(request).ok());
  EXPECT_EQ(CheckRevoke(request)->why, "one?two?[31m");
  request.set_reason(std::string(201, 'a'));
  ExpectRefused(CheckRevoke(request).status(), ub::Reason::kBadField, "reason");
}

TEST(CheckSetDrain, AbsentIsNotResume) {
  ub::v1::SetDrainRequest request;
  ExpectRefused(CheckSetDrain(request).status(), ub::Reason::kMissingField, "drain");
  request.set_drain(false);
  EXPECT_EQ(CheckSetDrain(request).value(), false);
}

TEST(CheckListBlocks, EmptyPoolIsNotAllPools) {
  ub::v1::ListBlocksRequest request;
  EXPECT_EQ(CheckListBlocks(request).value(), std::nullopt);
  request.set_pool("");
  ExpectRefused(CheckListBlocks(request).status(), ub::Reason::kBadField, "pool");
  request.set_pool("host");
  EXPECT_EQ(CheckListBlocks(request).value(), "host");
}

}  // namespace
}  // namespace ubd
