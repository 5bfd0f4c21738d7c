#include "daemon/memory/provisioner.h"

#include <pthread.h>

#include <algorithm>

#include "daemon/memory/mono_now.h"

namespace ubd {
namespace {

// Zeroing scales with cores, but must leave most of them to the tenants.
constexpr unsigned kMaxThreads = 4;

}  // namespace

Provisioner::Provisioner(std::vector<PoolMemory*> pools, Registry& registry, OwnMemory& own)
    : pools_(std::move(pools)), registry_(registry), own_(own) {
  own_.OnWork([this] { Poke(); });
  for (PoolMemory* pool : pools_) pool->store().OnWork([this] { Poke(); });
}

Provisioner::~Provisioner() { Stop(); }

void Provisioner::Start(ReclaimSink* sink) {
  sink_ = sink;
  {
    ub::MutexLock lock(&mu_);
    stop_ = false;
  }
  const unsigned count = std::clamp(std::thread::hardware_concurrency() / 4, 1U, kMaxThreads);
  for (unsigned i = 0; i < count; ++i) {
    threads_.emplace_back([this] { Run(); });
    ::pthread_setname_np(threads_.back().native_handle(), "ubd-provision");
  }
}

void Provisioner::Stop() {
  {
    ub::MutexLock lock(&mu_);
    stop_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Provisioner::Poke() {
  ub::MutexLock lock(&mu_);
  ++pokes_;
  changed_.SignalAll();
}

void Provisioner::Run() {
  mu_.Lock();
  while (!stop_) {
    const uint64_t seen = pokes_;
    MonoTime retry = MonoTime::Never();
    mu_.Unlock();
    const bool worked = DoOne(&retry);
    mu_.Lock();
    if (worked || stop_ || pokes_ != seen) continue;
    if (retry == MonoTime::Never()) {
      changed_.Wait(&mu_);
    } else {
      changed_.WaitWithTimeout(&mu_, retry - MonoNow());
    }
  }
  mu_.Unlock();
}

bool Provisioner::DoOne(MonoTime* retry) {
  if (own_.FreeOne()) return true;
  for (PoolMemory* pool : pools_) {
    ProvisionJob job = pool->store().NextJob(MonoNow());
    if (auto* free = std::get_if<FreeJob>(&job)) {
      Free(*pool, std::move(*free));
      return true;
    }
    if (std::holds_alternative<MakeJob>(job)) {
      Make(*pool);
      return true;
    }
    *retry = std::min(*retry, std::get<NoJob>(job).retry);
  }
  return false;
}

void Provisioner::Free(PoolMemory& pool, FreeJob job) {
  job.old.backing.reset();
  pool.store().Freed();
  if (job.old.was_retired) sink_->BackingFreed(job.old.block, job.old.charge);
}

void Provisioner::Make(PoolMemory& pool) {
  absl::StatusOr<std::unique_ptr<MemfdBacking>> made = MemfdBacking::Create(pool.Spec());
  absl::Status status = made.ok() ? (*made)->Populate() : made.status();
  if (status.ok()) status = (*made)->Register(registry_);
  if (!status.ok()) {
    if (made.ok()) made->reset();
    return pool.store().MakeFailed(MonoNow());
  }
  std::optional<BlockId> block = pool.store().Made(*made);
  if (!block) return;
  pool.Install(*block, std::move(*made));
  sink_->BlockFree(*block, /*fresh=*/true);
}

}  // namespace ubd
