#include "client/src/lease_cache.h"

#include <algorithm>
#include <utility>

namespace ub {
namespace {

Bytes SizeOf(const LeaseImpl& lease) { return Bytes(lease.mapping().size()); }

bool Fits(const LeaseImpl& lease, const std::string& pool, Bytes bytes) {
  const LeaseInfo& info = lease.info();
  return PiecesFor(bytes, info.block_bytes) == info.ub_addr.size() && info.pool == pool;
}

bool TakeBack(const LeaseImpl& lease) { return wire::TryTakeBack(*lease.info().word, lease.info().generation.value()); }

}  // namespace

LeaseCache::LeaseCache(const WordPage* page, Bytes limit) : page_(page), limit_(limit) {
  // Each cached lease has a word of its own.
  leases_.reserve(wire::kWordsPerSession);
}

std::unique_ptr<LeaseImpl> LeaseCache::Cut(size_t index) {
  std::unique_ptr<LeaseImpl> lease = std::move(leases_[index]);
  leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(index));
  bytes_ -= SizeOf(*lease);
  return lease;
}

void LeaseCache::Extract(size_t index, LeaseList* give_back, LeaseList* dead) {
  std::unique_ptr<LeaseImpl> lease = Cut(index);
  LeaseList* where = TakeBack(*lease) ? give_back : dead;
  where->push_back(std::move(lease));
}

std::unique_ptr<LeaseImpl> LeaseCache::Take(const std::string& pool, Bytes bytes, LeaseList* dead) {
  MutexLock lock(&mu_);
  const std::string& wanted = pool.empty() ? default_pool_ : pool;
  for (size_t i = leases_.size(); i-- > 0;) {
    if (!Fits(*leases_[i], wanted, bytes)) continue;
    std::unique_ptr<LeaseImpl> lease = Cut(i);
    // Its word does not tell of the session's end; the events do.
    if (TakeBack(*lease) && lease->ended() == LeaseEnd::kNot) {
      page_->CountTakeBack();
      return lease;
    }
    dead->push_back(std::move(lease));
  }
  return nullptr;
}

LeaseCache::Kept LeaseCache::Put(std::unique_ptr<LeaseImpl>& lease, LeaseList* give_back, LeaseList* dead) {
  Bytes size = SizeOf(*lease);
  if (size > limit_) return Kept::kGiveBack;
  MutexLock lock(&mu_);
  while (!leases_.empty() && (bytes_ > limit_ - size || leases_.size() == wire::kWordsPerSession))
    Extract(0, give_back, dead);
  // Idled under the lock: a recall that comes at once finds the lease here.
  if (!TryIdle(*lease->info().word, lease->info().generation.value())) return Kept::kEnded;
  if (page_->pressure()) return TakeBack(*lease) ? Kept::kGiveBack : Kept::kEnded;
  bytes_ += size;
  leases_.push_back(std::move(lease));
  return Kept::kYes;
}

std::unique_ptr<LeaseImpl> LeaseCache::Remove(LeaseId lease) {
  MutexLock lock(&mu_);
  auto it =
      std::find_if(leases_.begin(), leases_.end(), [lease](const auto& cached) { return cached->info().id == lease; });
  return it == leases_.end() ? nullptr : Cut(static_cast<size_t>(it - leases_.begin()));
}

void LeaseCache::RemoveRecalled(LeaseList* dead) {
  MutexLock lock(&mu_);
  for (size_t i = leases_.size(); i-- > 0;) {
    if (leases_[i]->ended() != LeaseEnd::kNot) dead->push_back(Cut(i));
  }
}

void LeaseCache::TakeAll(LeaseList* give_back, LeaseList* dead) {
  MutexLock lock(&mu_);
  while (!leases_.empty()) Extract(leases_.size() - 1, give_back, dead);
}

void LeaseCache::SetDefaultPool(const std::string& name) {
  MutexLock lock(&mu_);
  if (default_pool_ != name) default_pool_ = name;
}

Bytes LeaseCache::cached_bytes() const {
  MutexLock lock(&mu_);
  return bytes_;
}

}  // namespace ub
