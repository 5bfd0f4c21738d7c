#include "tests/unit/core/rig.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace ubd {

uint64_t Answer::detail(const std::string& name) const {
  uint64_t value = ~uint64_t{0};
  std::optional<std::string> text = ub::DetailOf(result.status(), name);
  EXPECT_TRUE(text.has_value()) << "no detail " << name << " in " << result.status().ToString();
  EXPECT_TRUE(text && absl::SimpleAtoi(*text, &value));
  return value;
}

std::vector<PoolSpec> OnePool(uint32_t blocks, Isolation isolation) {
  return {PoolSpec{"p", "host", kBlock, blocks, isolation}};
}

Rig::Rig(uint32_t blocks, const BrokerLimits& limits, Isolation isolation) : Rig(OnePool(blocks, isolation), limits) {}

Rig::Rig(const std::vector<PoolSpec>& pools, const BrokerLimits& limits) {
  auto random = [this](absl::Span<uint8_t> bytes) {
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    bytes[0] = next_random++;
  };
  broker = std::make_unique<Broker>(pools, limits, BrokerDeps{clock, memory, words, events, random});
}

Rig::~Rig() { Check(); }

SessionId Rig::Open(Uid uid, bool advisory) {
  SessionFacts facts;
  facts.id = SessionId(next_session++);
  facts.uid = uid;
  facts.pid = static_cast<int32_t>(10000 + facts.id.value());
  facts.name = "job" + std::to_string(facts.id.value());
  facts.read_only_advisory = advisory;
  broker->OpenSession(facts);
  return facts.id;
}

AnswerPtr Rig::Acquire(SessionId session, const Ask& ask) {
  auto answer = std::make_shared<Answer>();
  AcquireRequest request;
  request.session = session;
  request.pool = ask.pool;
  request.bytes = kBlock * ask.blocks;
  request.request = RequestId(ask.request.value_or(next_request++));
  request.wait = ask.wait;
  request.ttl = ask.ttl;
  request.cacheable = ask.cacheable;
  answer->claim = broker->Acquire(request, [answer](absl::StatusOr<Grant> result) {
    ++answer->calls;
    answer->result = std::move(result);
  });
  Check();
  return answer;
}

Grant Rig::Take(SessionId session, const Ask& ask) {
  AnswerPtr answer = Acquire(session, ask);
  EXPECT_TRUE(answer->granted()) << answer->result.status();
  return answer->result.ok() ? *answer->result : Grant();
}

void Rig::Release(SessionId session, const Grant& grant) {
  EXPECT_EQ(broker->Release(session, grant.lease), absl::OkStatus());
  Check();
}

Grant Rig::ShareWith(SessionId owner, const Grant& grant, SessionId other, Uid uid, Access access) {
  absl::StatusOr<Ticket> ticket = broker->Share({owner, grant.lease, access, uid, {}});
  EXPECT_EQ(ticket.status(), absl::OkStatus());
  absl::StatusOr<Grant> attached = broker->Attach(other, ticket->id);
  EXPECT_EQ(attached.status(), absl::OkStatus());
  Check();
  return *attached;
}

RangeRequest RangeOf(SessionId session, const Grant& grant, Bytes offset, Bytes length, Access needed) {
  return {session, grant.lease, static_cast<uint32_t>(grant.generation.value()), offset, length, needed};
}

RangePin Rig::PinAll(SessionId session, const Grant& grant, Access needed) {
  const Bytes all = grant.block_bytes * grant.blocks.size();
  absl::StatusOr<RangePin> pin = broker->PinRange(RangeOf(session, grant, Bytes(), all, needed));
  EXPECT_EQ(pin.status(), absl::OkStatus());
  Check();
  return pin.ok() ? *std::move(pin) : RangePin();
}

int Rig::Reclaim() {
  int freed = memory.Finish(*broker);
  Check();
  return freed;
}

void Rig::Pass(absl::Duration time) {
  clock.Advance(time);
  broker->Tick();
  Check();
}

PoolListing Rig::Pool(size_t i) const { return broker->Pools().at(i); }

std::optional<LeaseListing> Rig::LeaseOf(LeaseId id, const Viewer& viewer) const {
  for (LeaseListing& lease : broker->Leases(viewer)) {
    if (lease.id == id) return std::move(lease);
  }
  return std::nullopt;
}

void Rig::Check() const {
  EXPECT_EQ(broker->CheckInvariants(), absl::OkStatus());
  for (const PoolListing& pool : broker->Pools()) {
    EXPECT_EQ(pool.free + pool.leased + pool.cached + pool.draining + pool.recycling, pool.spec.blocks);
  }
}

}  // namespace ubd
