#include "daemon/memory/backing_store.h"

#include <algorithm>

#include "daemon/memory/sole_holder.h"

namespace ubd {
namespace {

constexpr absl::Duration kFirstRetry = absl::Milliseconds(10);
constexpr absl::Duration kLastRetry = absl::Seconds(5);

}  // namespace

void BackingStore::CountInstalled() {
  ub::MutexLock lock(&mu_);
  ++total_;
}

void BackingStore::AddClean(std::unique_ptr<MemfdBacking> backing) {
  ub::MutexLock lock(&mu_);
  ++total_;
  clean_.push_back(std::move(backing));
}

std::unique_ptr<MemfdBacking> BackingStore::TakeCleanLocked() {
  if (clean_.empty() || !waiting_.empty()) return nullptr;
  std::unique_ptr<MemfdBacking> taken = std::move(clean_.back());
  clean_.pop_back();
  return taken;
}

std::unique_ptr<MemfdBacking> BackingStore::TakeClean() {
  std::unique_ptr<MemfdBacking> taken;
  {
    ub::MutexLock lock(&mu_);
    taken = TakeCleanLocked();
  }
  if (taken != nullptr) poke_();
  return taken;
}

std::unique_ptr<MemfdBacking> BackingStore::TakeCleanOrWait(BlockId block) {
  std::unique_ptr<MemfdBacking> taken;
  {
    ub::MutexLock lock(&mu_);
    taken = TakeCleanLocked();
    if (taken == nullptr) waiting_.push_back(block);
  }
  poke_();
  return taken;
}

void BackingStore::Discard(OldBacking old) {
  {
    ub::MutexLock lock(&mu_);
    dead_.push_back(std::move(old));
  }
  poke_();
}

void BackingStore::Retire(OldBacking old) {
  ub::MutexLock lock(&mu_);
  old.was_retired = true;
  retired_.push_back(std::move(old));
}

size_t BackingStore::SweepRetired() {
  size_t left = 0;
  size_t freed = 0;
  {
    ub::MutexLock lock(&mu_);
    auto held = std::partition(retired_.begin(), retired_.end(),
                               [](const OldBacking& old) { return !IsSoleHolder(old.backing->fd()); });
    freed = static_cast<size_t>(retired_.end() - held);
    std::move(held, retired_.end(), std::back_inserter(dead_));
    retired_.erase(held, retired_.end());
    left = retired_.size();
  }
  if (freed > 0) poke_();
  return left;
}

ProvisionJob BackingStore::NextJob(MonoTime now) {
  ub::MutexLock lock(&mu_);
  if (!dead_.empty()) {
    FreeJob job{std::move(dead_.front())};
    dead_.pop_front();
    return job;
  }
  const uint64_t wanted = waiting_.size() + reserve_;
  if (clean_.size() + making_ >= wanted || total_ >= limit_) return NoJob{};
  if (now < retry_) return NoJob{retry_};
  ++making_;
  ++total_;
  return MakeJob{};
}

void BackingStore::Freed() {
  {
    ub::MutexLock lock(&mu_);
    --total_;
    retry_ = MonoTime();
  }
  poke_();
}

std::optional<BlockId> BackingStore::Made(std::unique_ptr<MemfdBacking>& backing) {
  ub::MutexLock lock(&mu_);
  --making_;
  back_off_ = absl::ZeroDuration();
  if (waiting_.empty()) {
    clean_.push_back(std::move(backing));
    return std::nullopt;
  }
  BlockId first = waiting_.front();
  waiting_.pop_front();
  return first;
}

void BackingStore::MakeFailed(MonoTime now) {
  ub::MutexLock lock(&mu_);
  --making_;
  --total_;
  back_off_ = std::clamp(back_off_ * 2, kFirstRetry, kLastRetry);
  retry_ = now + back_off_;
}

uint64_t BackingStore::Clean() const {
  ub::MutexLock lock(&mu_);
  return clean_.size();
}

uint64_t BackingStore::Total() const {
  ub::MutexLock lock(&mu_);
  return total_;
}

}  // namespace ubd
