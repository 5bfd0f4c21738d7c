// A Broker over the fakes, with short words for what tests do all the time.
#ifndef UBD_TESTS_UNIT_CORE_RIG_H_
#define UBD_TESTS_UNIT_CORE_RIG_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/broker.h"
#include "proto/wire/error.h"
#include "tests/unit/core/fakes.h"

namespace ubd {

inline constexpr Bytes kBlock = ub::MiB(2);
inline constexpr Uid kAlice(1001);
inline constexpr Uid kBob(1002);
inline constexpr Viewer kAdmin{true, Uid(0)};

// What became of one call of Acquire.
struct Answer {
  int calls = 0;
  absl::StatusOr<Grant> result = absl::UnknownError("not answered");
  ClaimId claim = 0;

  bool granted() const { return calls == 1 && result.ok(); }
  ub::Reason reason() const { return ub::ReasonOf(result.status()); }
  uint64_t detail(const std::string& name) const;
};
using AnswerPtr = std::shared_ptr<Answer>;

struct Ask {
  uint64_t blocks = 1;
  absl::Duration wait = absl::ZeroDuration();
  std::optional<absl::Duration> ttl;
  bool cacheable = false;
  std::string pool;
  std::optional<uint64_t> request;  // none: one that was never used
};

struct Rig {
  explicit Rig(uint32_t blocks = 4, const BrokerLimits& limits = {}, Isolation isolation = Isolation::kPerUid);
  explicit Rig(const std::vector<PoolSpec>& pools, const BrokerLimits& limits);
  ~Rig();

  SessionId Open(Uid uid, bool advisory = false);
  AnswerPtr Acquire(SessionId session, const Ask& ask = {});
  // Must succeed at once.
  Grant Take(SessionId session, const Ask& ask = {});
  void Release(SessionId session, const Grant& grant);
  // Shared by `owner` and attached by `other`; must succeed.
  Grant ShareWith(SessionId owner, const Grant& grant, SessionId other, Uid uid, Access access = Access::kReadOnly);
  // A transfer of the whole lease; must succeed.
  RangePin PinAll(SessionId session, const Grant& grant, Access needed = Access::kReadWrite);
  // Ends all reuse tests.
  int Reclaim();
  void Pass(absl::Duration time);
  PoolListing Pool(size_t i = 0) const;
  std::optional<LeaseListing> LeaseOf(LeaseId id, const Viewer& viewer = kAdmin) const;
  void Check() const;

  FakeClock clock;
  FakeMemory memory;
  FakeWords words;
  Events events;
  std::unique_ptr<Broker> broker;
  uint64_t next_session = 1;
  uint64_t next_request = 1000;
  uint8_t next_random = 1;
};

// What a transfer of a part of a lease asks for.
RangeRequest RangeOf(SessionId session, const Grant& grant, Bytes offset, Bytes length,
                     Access needed = Access::kReadWrite);

std::vector<PoolSpec> OnePool(uint32_t blocks, Isolation isolation = Isolation::kPerUid);

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_CORE_RIG_H_
