#include "client/src/lease_impl.h"

namespace ub {

LeaseImpl::LeaseImpl(LeaseHost* host, LeaseRegistry* registry, LeaseInfo info, Mapping mapping)
    : host_(host), registry_(registry), info_(std::move(info)), mapping_(std::move(mapping)), life_(info_.id) {
  registry_->Add(&life_);
}

LeaseImpl::~LeaseImpl() { registry_->Remove(&life_); }

absl::Status LeaseImpl::Release(std::unique_ptr<LeaseImpl> lease) {
  LeaseImpl* raw = lease.release();
  if (raw->transfers_.Park()) return absl::OkStatus();
  return raw->host_->GiveBack(std::unique_ptr<LeaseImpl>(raw));
}

void LeaseImpl::ReleaseLater(Lease lease) {
  LeaseImpl* raw = lease.impl_.release();
  if (raw == nullptr || raw->guard_.forked() || raw->transfers_.Park()) return;
  raw->host_->GiveBackLater(std::unique_ptr<LeaseImpl>(raw));
}

LeaseEnd LeaseImpl::ended() const {
  LeaseEnd told = life_.end.load(std::memory_order_acquire);
  if (told != LeaseEnd::kNot) return told;
  if (info_.expires && info_.expires->passed()) return LeaseEnd::kExpired;
  // A shared lease is no longer cacheable: its word is not its own any more.
  if (info_.word == nullptr || shared_) return LeaseEnd::kNot;
  // A held lease's word is BUSY with its own generation; anything else is the daemon's doing.
  uint64_t word = info_.word->word.load(std::memory_order_acquire);
  uint64_t busy = wire::PackWord(wire::WordState::kBusy, info_.generation.value());
  uint64_t idle = wire::PackWord(wire::WordState::kIdle, info_.generation.value());
  return word == busy || word == idle ? LeaseEnd::kNot : LeaseEnd::kRevoked;
}

}  // namespace ub
