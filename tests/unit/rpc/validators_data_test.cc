#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "daemon/rpc/validators.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr SessionId kSession{7};

void ExpectRefused(const absl::Status& status, ub::Reason reason, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(ub::ReasonOf(status), reason) << status;
  EXPECT_EQ(ub::DetailOf(status, "field"), field) << status;
}

TEST(CheckOpenQueue, DefaultsAndEveryField) {
  ub::v1::OpenQueueRequest request;
  request.set_sq_entries(64);
  auto checked = CheckOpenQueue(request, kSession);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->session, kSession);
  EXPECT_EQ(checked->cq_entries, 128u);
  EXPECT_EQ(checked->policy, ub::wire::PathPolicy::kDefault);
  request.set_cq_entries(256);
  request.set_policy(ub::v1::STAGED_ONLY);
  checked = CheckOpenQueue(request, kSession);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->cq_entries, 256u);
  EXPECT_EQ(checked->policy, ub::wire::PathPolicy::kStagedOnly);
}

TEST(CheckOpenQueue, TheLargestHasNoLargerCompletionRing) {
  ub::v1::OpenQueueRequest request;
  request.set_sq_entries(4096);
  auto checked = CheckOpenQueue(request, kSession);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->cq_entries, 4096u);
}

TEST(CheckOpenQueue, SizesThatCannotBe) {
  ub::v1::OpenQueueRequest request;
  ExpectRefused(CheckOpenQueue(request, kSession).status(), ub::Reason::kMissingField, "sq_entries");
  for (uint32_t entries : {0u, 1u, 3u, 100u, 8192u, 1u << 31, std::numeric_limits<uint32_t>::max()}) {
    request.set_sq_entries(entries);
    ExpectRefused(CheckOpenQueue(request, kSession).status(), ub::Reason::kBadField, "sq_entries");
  }
  request.set_sq_entries(64);
  for (uint32_t entries : {0u, 32u, 65u, 8192u}) {
    request.set_cq_entries(entries);
    ExpectRefused(CheckOpenQueue(request, kSession).status(), ub::Reason::kBadField, "cq_entries");
  }
  request.clear_cq_entries();
  request.set_policy(static_cast<ub::v1::PathPolicy>(9));
  ExpectRefused(CheckOpenQueue(request, kSession).status(), ub::Reason::kBadField, "policy");
}

TEST(CheckIds, AbsentIsNotZeroAndZeroIsNone) {
  ub::v1::CloseQueueRequest queue;
  ExpectRefused(CheckCloseQueue(queue).status(), ub::Reason::kMissingField, "queue");
  queue.set_queue(0);
  ExpectRefused(CheckCloseQueue(queue).status(), ub::Reason::kBadField, "queue");
  queue.set_queue(5);
  EXPECT_EQ(*CheckCloseQueue(queue), 5u);
  ub::v1::OpenFileRequest open;
  ExpectRefused(CheckOpenFile(open).status(), ub::Reason::kMissingField, "offer");
  open.set_offer(0);
  ExpectRefused(CheckOpenFile(open).status(), ub::Reason::kBadField, "offer");
  open.set_offer(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*CheckOpenFile(open), std::numeric_limits<uint64_t>::max());
  ub::v1::CloseFileRequest close;
  ExpectRefused(CheckCloseFile(close).status(), ub::Reason::kMissingField, "file");
  close.set_file(0);
  ExpectRefused(CheckCloseFile(close).status(), ub::Reason::kBadField, "file");
}

ub::v1::RegisterMemoryRequest GoodMemory() {
  ub::v1::RegisterMemoryRequest request;
  request.set_offer(1);
  request.set_offset(8192);
  request.set_bytes(1 << 20);
  request.set_access(ub::v1::READ_ONLY);
  return request;
}

TEST(CheckRegisterMemory, TakesEveryFieldOver) {
  auto checked = CheckRegisterMemory(GoodMemory());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->offer, 1u);
  EXPECT_EQ(checked->offset, Bytes(8192));
  EXPECT_EQ(checked->bytes, ub::MiB(1));
  EXPECT_EQ(checked->access, Access::kReadOnly);
}

TEST(CheckRegisterMemory, AbsentFieldsAreNotZero) {
  const auto* descriptor = ub::v1::RegisterMemoryRequest::descriptor();
  for (const char* field : {"offer", "offset", "bytes", "access"}) {
    ub::v1::RegisterMemoryRequest request = GoodMemory();
    request.GetReflection()->ClearField(&request, descriptor->FindFieldByName(field));
    ExpectRefused(CheckRegisterMemory(request).status(), ub::Reason::kMissingField, field);
  }
}

TEST(CheckRegisterMemory, RangesThatCannotBe) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (uint64_t offset : {uint64_t{1}, uint64_t{4095}, kMost, kMost - 4095}) {
    ub::v1::RegisterMemoryRequest request = GoodMemory();
    request.set_offset(offset);
    ExpectRefused(CheckRegisterMemory(request).status(), ub::Reason::kBadField, "offset");
  }
  for (uint64_t bytes : {uint64_t{0}, uint64_t{4097}, (uint64_t{1} << 30) + 4096, kMost - 4095}) {
    ub::v1::RegisterMemoryRequest request = GoodMemory();
    request.set_bytes(bytes);
    ExpectRefused(CheckRegisterMemory(request).status(), ub::Reason::kBadField, "bytes");
  }
  ub::v1::RegisterMemoryRequest request = GoodMemory();
  request.set_access(ub::v1::ACCESS_UNSPECIFIED);
  ExpectRefused(CheckRegisterMemory(request).status(), ub::Reason::kBadField, "access");
}

TEST(CheckSetPath, NamesOnly) {
  ub::v1::SetPathRequest request;
  ExpectRefused(CheckSetPath(request).status(), ub::Reason::kMissingField, "policy");
  for (const char* name : {"", "default", "direct", "DIRECT_ONLY", "staged-only "}) {
    request.set_policy(name);
    ExpectRefused(CheckSetPath(request).status(), ub::Reason::kBadField, "policy");
  }
  request.set_policy("staged-only");
  EXPECT_EQ(*CheckSetPath(request), ub::wire::PathPolicy::kStagedOnly);
}

}  // namespace
}  // namespace ubd
