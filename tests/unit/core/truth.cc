#include "tests/unit/core/truth.h"

namespace ubd {

void Truth::CheckAll() {
  ASSERT_EQ(rig_.broker->CheckInvariants(), absl::OkStatus());
  // Every session's account, counted anew from what the model knows.
  std::map<Uid, uint64_t> used;
  for (const LeaseListing& lease : rig_.broker->Leases(kAdmin)) used[lease.holders[0].uid] += lease.blocks;
  for (const auto& [block, charge] : rig_.memory.retired) {
    for (Uid uid : charge) ++used[uid];
  }
  for (const CallPtr& call : calls_) {
    if (call->waiting && call->calls == 0) used[sessions_.at(call->session)] += call->blocks;
  }
  for (const SessionListing& session : rig_.broker->Sessions(kAdmin)) {
    ASSERT_EQ(session.uid_bytes, kBlock * used[session.facts.uid]) << "uid " << session.facts.uid;
  }
  ASSERT_EQ(rig_.Pool().retired, rig_.memory.retired.size());
  CheckTransfers();
}

void Truth::CheckTransfers() {
  std::map<BlockId, uint64_t> in_flight;
  std::set<BlockId> own_in_flight;  // of leases that have ended
  for (const LeasePin& pin : pins_) {
    for (const GrantedBlock& block : pin.blocks()) ++in_flight[block.block];
  }
  for (const Flight& flight : flights_) {
    for (const Piece& piece : flight.pin.pieces()) ++in_flight[piece.block];
    auto own = own_ever_.find(flight.lease);
    if (own != own_ever_.end() && !own_.contains(flight.lease)) own_in_flight.insert(own->second);
  }
  for (const BlockListing& block : rig_.broker->Blocks(kAdmin)) {
    ASSERT_EQ(block.in_flight, in_flight[block.block.id]) << "block " << block.block.id;
  }
  for (const Order& order : rig_.memory.pending()) {
    ASSERT_EQ(in_flight[order.block], 0u) << "block " << order.block << " is handed on under a device";
  }
  // Dropped: once, and when it has ended and nothing is in flight, neither earlier nor later.
  std::vector<BlockId> dropped = rig_.memory.dropped();
  const std::set<BlockId> once(dropped.begin(), dropped.end());
  ASSERT_EQ(once.size(), dropped.size());
  for (const auto& [lease, block] : own_ever_) {
    bool in_use = own_.contains(lease) || own_in_flight.contains(block);
    ASSERT_EQ(once.contains(block), !in_use) << "own block " << block;
  }
}

void Truth::OnAnswer(Call& call, absl::StatusOr<Grant> result) {
  ++call.calls;
  ASSERT_EQ(call.calls, 1);
  if (!result.ok() || result->repeated) return;
  ++grants_;
  // First come, first served: nobody who asked earlier is still waiting. A superseding call has the order of the
  // first.
  for (const CallPtr& other : calls_) {
    ASSERT_FALSE(other->waiting && other->calls == 0 && other->order < call.order && &call != other.get())
        << "request " << call.request << " overtook " << other->request;
  }
  ASSERT_GT(result->generation.value(), last_generation_);
  last_generation_ = result->generation.value();
  Uid uid = sessions_.at(call.session);
  for (const GrantedBlock& block : result->blocks) {
    ASSERT_FALSE(in_use_.contains(block.block)) << "block " << block.block << " is in two leases";
    in_use_.insert(block.block);
    std::set<Uid>& seen = seen_[block.block];
    seen.insert(uid);
    ASSERT_EQ(seen.size(), 1u) << "block " << block.block << " has another uid's bytes";
    ASSERT_FALSE(dirty_.contains(block.block)) << "block " << block.block << " had an unclean end";
  }
  held_[result->lease] = {call.session, *result, {}};
}

void Truth::Sync() {
  for (; read_ < rig_.events.all.size(); ++read_) {
    const Event& event = rig_.events.all[read_];
    bool clean = event.kind == EventKind::kReleased && event.text.empty();
    clean = clean || event.kind == EventKind::kRecalled;
    bool end = clean || event.kind == EventKind::kReleased || event.kind == EventKind::kRevoked ||
               event.kind == EventKind::kExpired || event.kind == EventKind::kReclaimed;
    auto held = end ? held_.find(*event.lease) : held_.end();
    if (held == held_.end() || held->second.owner != *event.session) continue;
    for (const GrantedBlock& block : held->second.grant.blocks) {
      if (!clean || unclean_.contains(*event.lease)) dirty_.insert(block.block);
    }
    held_.erase(held);
  }
}

}  // namespace ubd
