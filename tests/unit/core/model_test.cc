// Thousands of random steps against a small model of what must be true (truth.h). Every step is followed by all checks,
// so the first wrong step is the one that is reported. The seed is in the failure's trace.
#include <algorithm>
#include <random>

#include "tests/unit/core/truth.h"

namespace ubd {
namespace {

class Model : public Truth {
 public:
  explicit Model(uint32_t seed) : rng_(seed) {
    for (int uid = 0; uid < kUids; ++uid) Open(UidOf(uid));
  }

  void Step() {
    uint32_t dice = rng_() % 80;
    if (dice < 16) return Ask();
    if (dice < 24) return ReleaseOne();
    if (dice < 36) return MemoryStep();
    if (dice < 40) return PinStep();
    if (dice < 44) return ShareStep();
    if (dice < 48) return CacheStep();
    if (dice < 51) return GiveUp();
    if (dice < 54) return Retry();
    if (dice < 57) return LetGo();
    if (dice < 58) return Kill();
    if (dice < 59) return Operate();
    if (dice < 68) return TransferStep();
    if (dice < 73) return OwnStep();
    rig_.Pass(absl::Milliseconds(static_cast<int64_t>(rng_() % 400)));
  }

  // Everybody goes: everything must come back, and every call must have been answered once.
  void Finish() {
    pins_.clear();
    while (!sessions_.empty()) CloseOne(sessions_.begin()->first);
    CheckTransfers();
    flights_.clear();
    CheckTransfers();
    rig_.memory.Finish(*rig_.broker);
    LetGo();
    EXPECT_EQ(rig_.Pool().free, kBlocks);
    EXPECT_EQ(rig_.broker->Totals().leases, 0u);
    for (const CallPtr& call : calls_) EXPECT_EQ(call->calls, 1) << "request " << call->request;
  }

  size_t own_grants() const { return own_ever_.size(); }

 private:
  Uid UidOf(int i) const { return Uid(static_cast<uint32_t>(1001 + i)); }

  void Open(Uid uid) { sessions_[rig_.Open(uid)] = uid; }

  template <class Map>
  auto Pick(Map& map) {
    return std::next(map.begin(), static_cast<int64_t>(rng_() % map.size()));
  }

  void Ask() {
    if (sessions_.size() < 8 && rng_() % 4 == 0) Open(UidOf(static_cast<int>(rng_() % kUids)));
    auto call = std::make_shared<Call>();
    call->session = Pick(sessions_)->first;
    call->request = next_request_++;
    call->order = call->request;
    call->blocks = 1 + rng_() % 5;
    Send(call);
  }

  void Retry() {
    if (calls_.empty()) return;
    const Call& old = *calls_[calls_.size() - 1 - rng_() % std::min<size_t>(calls_.size(), 20)];
    if (!sessions_.contains(old.session)) return;
    auto call = std::make_shared<Call>(old);
    call->calls = 0;
    call->waiting = false;
    // Takes over the place of whoever waits under this id; otherwise it is a new request.
    call->order = next_request_++;
    for (const CallPtr& other : calls_) {
      bool same = other->session == call->session && other->request == call->request;
      if (same && other->waiting && other->calls == 0) call->order = other->order;
    }
    Send(call);
  }

  void Send(const CallPtr& call) {
    calls_.push_back(call);
    bool wait = rng_() % 2 == 0;
    AcquireRequest request{.session = call->session,
                           .bytes = kBlock * call->blocks,
                           .request = RequestId(call->request),
                           .wait = absl::Milliseconds(wait ? rng_() % 3000 : 0),
                           .cacheable = rng_() % 2 == 0};
    if (rng_() % 6 == 0) request.ttl = absl::Milliseconds(1 + rng_() % 2000);
    call->claim = rig_.broker->Acquire(
        request, [this, call](absl::StatusOr<Grant> result) { OnAnswer(*call, std::move(result)); });
    call->waiting = call->calls == 0;
  }

  void ReleaseOne() {
    Sync();
    if (held_.empty()) return;
    auto held = Pick(held_);
    SessionId who = held->second.owner;
    if (!held->second.shares.empty() && rng_() % 2 == 0) who = *held->second.shares.begin();
    held->second.shares.erase(who);
    LeaseId id = held->first;
    ASSERT_EQ(rig_.broker->Release(who, id), absl::OkStatus());
    ASSERT_FALSE(rig_.broker->Release(who, id).ok()) << "twice";
    Sync();
  }

  void MemoryStep() {
    std::optional<Order> order = rig_.memory.Take();
    if (!order) return;
    Sync();
    bool held = rng_() % 6 == 0;
    bool fresh = held || order->order.must_be_fresh;
    in_use_.erase(order->block);
    if (fresh) {
      seen_[order->block].clear();
      dirty_.erase(order->block);
    }
    rig_.memory.FinishOne(*rig_.broker, *order, held);
  }

  void LetGo() { rig_.memory.LetGo(*rig_.broker); }

  void PinStep() {
    Sync();
    if (!pins_.empty() && rng_() % 2 == 0) {
      pins_.erase(pins_.begin() + static_cast<int64_t>(rng_() % pins_.size()));
      return;
    }
    if (held_.empty()) return;
    auto held = Pick(held_);
    absl::StatusOr<LeasePin> pin = rig_.broker->Pin(held->second.owner, held->first, Access::kReadWrite);
    ASSERT_EQ(pin.status(), absl::OkStatus());
    pins_.push_back(*std::move(pin));
  }

  void TransferStep() {
    Sync();
    if (!flights_.empty() && rng_() % 2 == 0) {
      flights_.erase(flights_.begin() + static_cast<int64_t>(rng_() % flights_.size()));
      return;
    }
    if (!own_.empty() && rng_() % 3 == 0) {
      const OwnLease& own = Pick(own_)->second;
      return Fly(own.session, own.grant, Access::kReadWrite);
    }
    if (held_.empty()) return;
    const Held& held = Pick(held_)->second;
    if (held.shares.empty() || rng_() % 2 == 0) return Fly(held.owner, held.grant, Access::kReadWrite);
    ASSERT_FALSE(TryFly(*held.shares.begin(), held.grant, Access::kReadWrite, Bytes(), Bytes(1)).ok());
    Fly(*held.shares.begin(), held.grant, Access::kReadOnly);
  }

  absl::StatusOr<RangePin> TryFly(SessionId session, const Grant& grant, Access needed, Bytes offset, Bytes length) {
    return rig_.broker->PinRange(RangeOf(session, grant, offset, length, needed));
  }

  void Fly(SessionId session, const Grant& grant, Access needed) {
    const Bytes size = grant.block_bytes * grant.blocks.size();
    const Bytes offset(rng_() % (size.count() + 1));
    const Bytes length(rng_() % (size.count() - offset.count() + 1));
    absl::StatusOr<RangePin> pin = TryFly(session, grant, needed, offset, length);
    ASSERT_EQ(pin.status(), absl::OkStatus());
    Bytes sum;
    for (const Piece& piece : pin->pieces()) sum += piece.length;
    ASSERT_EQ(sum, length);
    ASSERT_FALSE(TryFly(session, grant, needed, offset, size - offset + Bytes(1)).ok());
    flights_.push_back({grant.lease, *std::move(pin)});
  }

  void OwnStep() {
    if (!own_.empty() && rng_() % 3 == 0) {
      auto own = Pick(own_);
      bool revoke = rng_() % 4 == 0;
      absl::Status ended =
          revoke ? rig_.broker->Revoke(kAdmin, own->first, "x") : rig_.broker->Release(own->second.session, own->first);
      ASSERT_EQ(ended, absl::OkStatus());
      ASSERT_FALSE(rig_.broker->Release(own->second.session, own->first).ok()) << "twice";
      own_.erase(own);
      return;
    }
    SessionId session = Pick(sessions_)->first;
    BlockId block(next_own_++);
    absl::StatusOr<Grant> grant = rig_.broker->GrantOwn(session, block, kBlock, Access::kReadWrite);
    if (!grant.ok()) return;  // over quota
    ASSERT_GT(grant->generation.value(), last_generation_);
    last_generation_ = grant->generation.value();
    own_[grant->lease] = {session, *grant};
    own_ever_[grant->lease] = block;
  }

  void ShareStep() {
    Sync();
    if (held_.empty()) return;
    auto held = Pick(held_);
    auto [session, uid] = *Pick(sessions_);
    absl::StatusOr<Ticket> ticket = rig_.broker->Share({held->second.owner, held->first, Access::kReadOnly, uid, {}});
    ASSERT_EQ(ticket.status(), absl::OkStatus());
    bool holds = session == held->second.owner || held->second.shares.contains(session);
    absl::StatusOr<Grant> attached = rig_.broker->Attach(session, ticket->id);
    ASSERT_EQ(attached.ok(), !holds);
    if (holds) return;
    held->second.shares.insert(session);
    for (const GrantedBlock& block : attached->blocks) seen_[block.block].insert(uid);
    if (rng_() % 8 != 0) return;
    rig_.broker->FailDelivery(session, held->first);
    held->second.shares.erase(session);
    unclean_.insert(held->first);
  }

  void CacheStep() {
    Sync();
    if (held_.empty()) return;
    const Held& held = Pick(held_)->second;
    if (!held.grant.word || !rig_.LeaseOf(held.grant.lease)) return;
    uint64_t word = rig_.words.StateOf(held.owner, *held.grant.word);
    if (word != ub::wire::PackWord(ub::wire::WordState::kBusy, held.grant.generation.value())) {
      rig_.words.ClientTakeBack(held.owner, *held.grant.word, held.grant.generation);
      return;
    }
    if (rig_.words.ClientIdle(held.owner, *held.grant.word, held.grant.generation)) return;
    ASSERT_EQ(rig_.broker->Release(held.owner, held.grant.lease), absl::OkStatus());
  }

  void GiveUp() {
    if (calls_.empty()) return;
    const Call& call = *calls_[calls_.size() - 1 - rng_() % std::min<size_t>(calls_.size(), 20)];
    rig_.broker->Abandon(call.session, RequestId(call.request), call.claim);
  }

  void Kill() {
    CloseOne(Pick(sessions_)->first);
    Open(UidOf(static_cast<int>(rng_() % kUids)));
  }

  void CloseOne(SessionId session) {
    Sync();
    for (auto& [id, held] : held_) {
      if (held.shares.erase(session) > 0) unclean_.insert(id);
    }
    rig_.broker->CloseSession(session, SessionEnd::kDied);
    std::erase_if(own_, [session](const auto& own) { return own.second.session == session; });
    sessions_.erase(session);
    Sync();
  }

  void Operate() {
    Sync();
    switch (rng_() % 3) {
      case 0:
        rig_.broker->SetDrain(true);
        CheckAll();
        rig_.broker->SetDrain(false);
        return;
      case 1:
        if (held_.empty()) return;
        ASSERT_EQ(rig_.broker->Revoke(kAdmin, Pick(held_)->first, "x"), absl::OkStatus());
        return;
      default: {
        BrokerLimits limits = Limits();
        limits.default_per_uid = kBlock * (5 + rng_() % 6);
        rig_.broker->SetLimits(limits);
      }
    }
  }

  std::mt19937 rng_;
  uint32_t next_own_ = kBlocks;
};

class ModelTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ModelTest, RandomStepsBreakNoRule) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  Model model(GetParam());
  for (int step = 0; step < 6000; ++step) {
    ASSERT_NO_FATAL_FAILURE(model.Step()) << "step " << step;
    ASSERT_NO_FATAL_FAILURE(model.CheckAll()) << "step " << step;
    if (testing::Test::HasFailure()) FAIL() << "step " << step;
  }
  model.Finish();
  EXPECT_GT(model.grants(), 200);
  EXPECT_GT(model.own_grants(), 20u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, testing::Range(1u, 13u));

}  // namespace
}  // namespace ubd
