#include "daemon/core/broker.h"

#include <utility>

#include "daemon/core/broker_check.h"
#include "daemon/core/broker_section.h"
#include "daemon/core/broker_state.h"
#include "daemon/core/refusals.h"

namespace ubd {

Broker::Broker(const std::vector<PoolSpec>& pools, const BrokerLimits& limits, const BrokerDeps& deps)
    : state_(std::make_unique<BrokerState>(pools, limits, deps)) {}

Broker::~Broker() {
  BrokerSection section(&mu_, state_.get());
  state_->granter.EndAllWaits(refusal::Stopping(""));
}

void Broker::OpenSession(const SessionFacts& facts) {
  BrokerSection section(&mu_, state_.get());
  state_->OpenSession(facts);
}

void Broker::CloseSession(SessionId session, SessionEnd end) {
  BrokerSection section(&mu_, state_.get());
  state_->CloseSession(session, end);
}

ClaimId Broker::Acquire(const AcquireRequest& request, GrantCallback done) {
  BrokerSection section(&mu_, state_.get());
  return state_->granter.Acquire(request, std::move(done));
}

bool Broker::Abandon(SessionId session, RequestId request, std::optional<ClaimId> claim) {
  BrokerSection section(&mu_, state_.get());
  return state_->granter.Abandon(session, request, claim);
}

absl::Status Broker::Release(SessionId session, LeaseId lease) {
  BrokerSection section(&mu_, state_.get());
  return state_->Release(session, lease);
}

void Broker::FailDelivery(SessionId session, LeaseId lease) {
  BrokerSection section(&mu_, state_.get());
  state_->FailDelivery(session, lease);
}

absl::StatusOr<Ticket> Broker::Share(const ShareRequest& request) {
  BrokerSection section(&mu_, state_.get());
  return state_->sharing.Share(request);
}

absl::StatusOr<Grant> Broker::Attach(SessionId session, const TicketId& ticket) {
  BrokerSection section(&mu_, state_.get());
  return state_->sharing.Attach(session, ticket);
}

absl::StatusOr<LeasePin> Broker::Pin(SessionId session, LeaseId lease, Access needed) {
  BrokerSection section(&mu_, state_.get());
  absl::StatusOr<std::vector<GrantedBlock>> blocks = state_->Pin(session, lease, needed);
  if (!blocks.ok()) return blocks.status();
  LeasePin pin;
  pin.broker_ = this;
  pin.lease_ = lease;
  pin.blocks_ = *std::move(blocks);
  return pin;
}

void Broker::Unpin(LeaseId lease) {
  BrokerSection section(&mu_, state_.get());
  state_->life.Unpin(lease);
}

absl::StatusOr<RangePin> Broker::PinRange(const RangeRequest& request) {
  RangePin pin;
  pin.lease_ = request.lease;
  {
    ub::MutexLock lock(&mu_);  // no section: a pin changes nothing for those who wait
    absl::StatusOr<std::vector<Piece>> pieces = state_->PinRange(request);
    if (!pieces.ok()) return pieces.status();
    pin.pieces_ = *std::move(pieces);
  }
  pin.broker_ = this;
  return pin;
}

void Broker::UnpinRange(LeaseId lease, const std::vector<Piece>& pieces) {
  BrokerSection section(&mu_, state_.get());
  state_->life.UnpinRange(lease, pieces);
}

absl::StatusOr<Grant> Broker::GrantOwn(SessionId session, BlockId block, Bytes bytes, Access access) {
  BrokerSection section(&mu_, state_.get());
  return state_->GrantOwn(session, block, bytes, access);
}

absl::Status Broker::Revoke(const Viewer& viewer, LeaseId lease, const std::string& why) {
  BrokerSection section(&mu_, state_.get());
  return state_->Revoke(viewer, lease, why);
}

uint64_t Broker::SetDrain(bool drain) {
  BrokerSection section(&mu_, state_.get());
  return state_->SetDrain(drain);
}

void Broker::Stop(const std::string& why) {
  BrokerSection section(&mu_, state_.get());
  state_->Stop(why);
}

void Broker::SetLimits(const BrokerLimits& limits) {
  BrokerSection section(&mu_, state_.get());
  state_->data.limits = limits;
  for (PoolState& pool : state_->data.pools) pool.dirty = true;
}

void Broker::Tick() {
  BrokerSection section(&mu_, state_.get());
  state_->Tick();
}

std::optional<MonoTime> Broker::NextDeadline() const {
  ub::MutexLock lock(&mu_);
  return state_->data.deadlines.Earliest();
}

void Broker::OnDeadlineChange(std::function<void()> poke) {
  BrokerSection section(&mu_, state_.get());
  state_->poke = std::move(poke);
}

void Broker::BlockFree(BlockId block, bool fresh) {
  BrokerSection section(&mu_, state_.get());
  state_->news.Free(block, fresh);
}

void Broker::BlockRecycling(BlockId block) {
  BrokerSection section(&mu_, state_.get());
  state_->news.Recycling(block);
}

void Broker::BackingRetired(BlockId block, const Charge& charge) {
  BrokerSection section(&mu_, state_.get());
  state_->news.Retired(block, charge);
}

void Broker::BackingFreed(BlockId block, const Charge& charge) {
  BrokerSection section(&mu_, state_.get());
  state_->news.RetiredFreed(block, charge);
}

void Broker::TamperingFound(BlockId block, const Charge& charge, const std::string& what) {
  BrokerSection section(&mu_, state_.get());
  state_->news.Tampering(block, charge, what);
}

std::vector<PoolListing> Broker::Pools() const {
  ub::MutexLock lock(&mu_);
  return state_->lister.Pools();
}

std::vector<BlockListing> Broker::Blocks(const Viewer& viewer) const {
  ub::MutexLock lock(&mu_);
  return state_->lister.Blocks(viewer);
}

std::vector<LeaseListing> Broker::Leases(const Viewer& viewer) const {
  ub::MutexLock lock(&mu_);
  return state_->lister.Leases(viewer);
}

std::vector<SessionListing> Broker::Sessions(const Viewer& viewer) const {
  ub::MutexLock lock(&mu_);
  return state_->lister.Sessions(viewer);
}

BrokerTotals Broker::Totals() const {
  ub::MutexLock lock(&mu_);
  return state_->lister.Totals();
}

UbAddr Broker::AddrOf(BlockId block) const {
  ub::MutexLock lock(&mu_);
  if (PoolState* pool = state_->data.PoolOf(block)) return pool->blocks.block(block).addr;
  auto own = state_->data.own.find(block);
  return own == state_->data.own.end() ? UbAddr() : state_->data.leases.Find(own->second)->own->addr;
}

absl::Status Broker::CheckInvariants() const {
  ub::MutexLock lock(&mu_);
  return CheckData(state_->data);
}

}  // namespace ubd
