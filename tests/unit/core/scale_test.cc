// Ten thousand sessions with a lease each: what one grant costs must not depend on how many others there are.
#include <chrono>

#include "tests/unit/core/rig.h"

namespace ubd {
namespace {

constexpr uint32_t kMany = 10000;

AcquireRequest RequestOf(SessionId session, uint64_t request, absl::Duration wait = absl::ZeroDuration()) {
  return {.session = session, .bytes = kBlock, .request = RequestId(request), .wait = wait, .cacheable = true};
}

// Median nanoseconds of grant, release and reuse test with `sessions` leases held by others.
int64_t CostOfAGrant(uint32_t sessions) {
  Rig rig(sessions + 1);
  for (uint32_t i = 0; i < sessions; ++i) {
    rig.broker->Acquire(RequestOf(rig.Open(Uid(i % 100)), 1), [](absl::StatusOr<Grant>) {});
  }
  SessionId alice = rig.Open(kAlice);
  std::vector<int64_t> costs;
  for (int i = 0; i < 501; ++i) {
    auto start = std::chrono::steady_clock::now();
    LeaseId lease;
    rig.broker->Acquire(RequestOf(alice, 1), [&](absl::StatusOr<Grant> result) { lease = result->lease; });
    EXPECT_TRUE(rig.broker->Release(alice, lease).ok());
    rig.memory.Finish(*rig.broker);
    costs.push_back((std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_EQ(rig.Pool().leased, sessions);
  std::nth_element(costs.begin(), costs.begin() + 250, costs.end());
  return costs[250];
}

TEST(Scale, GrantDoesNotWalkOverAllLeases) {
  int64_t few = CostOfAGrant(10);
  int64_t many = CostOfAGrant(kMany);
  // A walk over ten thousand records would cost a hundred times as much.
  EXPECT_LT(many, few * 20 + 5000) << few << " ns with 10 others, " << many << " ns with " << kMany;
}

// Median nanoseconds of pinning and unpinning a range.
int64_t CostOfATransfer(uint32_t sessions) {
  Rig rig(sessions + 1);
  for (uint32_t i = 0; i < sessions; ++i) {
    rig.broker->Acquire(RequestOf(rig.Open(Uid(i % 100)), 1), [](absl::StatusOr<Grant>) {});
  }
  SessionId alice = rig.Open(kAlice);
  Grant grant = rig.Take(alice, {.cacheable = true});
  std::vector<int64_t> costs;
  for (int i = 0; i < 501; ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int times = 0; times < 20; ++times) {
      EXPECT_TRUE(rig.broker->PinRange(RangeOf(alice, grant, Bytes(), kBlock))->valid());
    }
    costs.push_back((std::chrono::steady_clock::now() - start).count() / 20);
  }
  std::nth_element(costs.begin(), costs.begin() + 250, costs.end());
  return costs[250];
}

TEST(Scale, TransferCostsTheSameWhateverElseThereIs) {
  int64_t few = CostOfATransfer(10);
  int64_t many = CostOfATransfer(kMany);
  RecordProperty("ns_per_transfer", static_cast<int>(many));
  EXPECT_LT(many, few * 20 + 5000) << few << " ns with 10 leases, " << many << " ns with " << kMany;
}

TEST(Scale, TenThousandWaitersAreServedInOrder) {
  BrokerLimits limits;
  limits.max_waiters_per_uid = kMany;
  Rig rig(1, limits);
  SessionId alice = rig.Open(kAlice);
  Grant held = rig.Take(alice);
  std::vector<uint32_t> served;
  std::optional<std::pair<SessionId, LeaseId>> last;
  for (uint32_t i = 0; i < kMany; ++i) {
    SessionId session = rig.Open(kAlice);
    rig.broker->Acquire(RequestOf(session, 1, absl::Hours(1)), [&, i, session](absl::StatusOr<Grant> result) {
      served.push_back(i);
      last = {session, result->lease};
    });
  }
  ASSERT_TRUE(rig.broker->Release(alice, held.lease).ok());
  for (uint32_t i = 0; i < kMany; ++i) {
    rig.memory.Finish(*rig.broker);
    ASSERT_EQ(served.size(), i + 1);
    ASSERT_EQ(served.back(), i);
    ASSERT_TRUE(rig.broker->Release(last->first, last->second).ok());
  }
}

}  // namespace
}  // namespace ubd
