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
