#include "client/src/lease_registry.h"

#include <utility>

#include "proto/wire/error.h"

namespace ub {
namespace {

void Mark(LeaseLife& life, LeaseEnd end) {
  LeaseEnd not_yet = LeaseEnd::kNot;
  life.end.compare_exchange_strong(not_yet, end, std::memory_order_release, std::memory_order_relaxed);
}

}  // namespace

absl::Status LeaseEndError(LeaseEnd end) {
  switch (end) {
    case LeaseEnd::kNot:
      return absl::OkStatus();
    case LeaseEnd::kRecalled:
      return MakeError(absl::StatusCode::kAborted, Reason::kRevoked,
                       "the daemon took this cached lease back; acquire anew");
    case LeaseEnd::kRevoked:
      return MakeError(absl::StatusCode::kAborted, Reason::kRevoked,
                       "the lease was revoked: its memory may belong to somebody else by now; acquire anew");
    case LeaseEnd::kExpired:
      return MakeError(absl::StatusCode::kAborted, Reason::kExpired,
                       "the lease's time is over; acquire anew, or ask for a longer ttl");
    case LeaseEnd::kOwnerReleased:
      return MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchLease,
                       "the owner of this share released it; ask the owner for a new ticket");
    case LeaseEnd::kDisconnected:
      return MakeError(absl::StatusCode::kUnavailable, Reason::kSessionEnded,
                       "the session with the daemon has ended (daemon stopped or restarted, or it closed the session); "
                       "connect anew");
  }
  return absl::InternalError("unknown end of a lease");
}

void LeaseRegistry::Add(LeaseLife* life) {
  MutexLock lock(&mu_);
  lives_.emplace(life->id, life);
  if (all_ != LeaseEnd::kNot) Mark(*life, all_);
  for (const auto& [id, end] : ended_) {
    if (end != LeaseEnd::kNot && id == life->id) Mark(*life, end);
  }
}

void LeaseRegistry::Remove(LeaseLife* life) {
  MutexLock lock(&mu_);
  auto [begin, end] = lives_.equal_range(life->id);
  for (auto it = begin; it != end; ++it) {
    if (it->second != life) continue;
    lives_.erase(it);
    return;
  }
}

bool LeaseRegistry::End(LeaseId lease, LeaseEnd how) {
  MutexLock lock(&mu_);
  for (const auto& [id, end] : ended_) {
    if (end != LeaseEnd::kNot && id == lease) return false;
  }
  ended_[next_ended_] = {lease, how};
  next_ended_ = (next_ended_ + 1) % kRemembered;
  auto [begin, end] = lives_.equal_range(lease);
  for (auto it = begin; it != end; ++it) Mark(*it->second, how);
  return true;
}

void LeaseRegistry::EndAll(LeaseEnd end) {
  MutexLock lock(&mu_);
  all_ = end;
  for (auto& [id, life] : lives_) Mark(*life, end);
}

std::vector<LeaseId> LeaseRegistry::Ids() const {
  MutexLock lock(&mu_);
  std::vector<LeaseId> ids;
  ids.reserve(lives_.size());
  for (const auto& [id, life] : lives_) ids.push_back(id);
  return ids;
}

}  // namespace ub
