#include "daemon/memory/reclaimer.h"

#include <pthread.h>

#include <algorithm>

#include "daemon/memory/mono_now.h"

namespace ubd {
namespace {

constexpr absl::Duration kFirstPause = absl::Microseconds(500);
constexpr absl::Duration kLastPause = absl::Milliseconds(10);
constexpr absl::Duration kFirstSweep = absl::Milliseconds(10);
constexpr absl::Duration kLastSweep = absl::Seconds(5);

}  // namespace

Reclaimer::Reclaimer(std::vector<PoolMemory*> pools, PoolOf pool_of, std::optional<Pagemap> pagemap)
    : pools_(std::move(pools)), pool_of_(std::move(pool_of)), pagemap_(std::move(pagemap)) {}

Reclaimer::~Reclaimer() { Stop(); }

void Reclaimer::Order(BlockId block, ReclaimOrder order) {
  MonoTime give_up = MonoNow() + order.grace;
  ub::MutexLock lock(&mu_);
  new_.push_back({block, std::move(order), give_up, kFirstPause});
  changed_.Signal();
}

void Reclaimer::Start(ReclaimSink* sink) {
  sink_ = sink;
  {
    ub::MutexLock lock(&mu_);
    stop_ = false;
  }
  thread_ = std::thread([this] { Run(); });
  ::pthread_setname_np(thread_.native_handle(), "ubd-reclaim");
}

void Reclaimer::Stop() {
  {
    ub::MutexLock lock(&mu_);
    stop_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void Reclaimer::Run() {
  while (std::optional<Task> task = NextTask()) Handle(std::move(*task));
}

MonoTime Reclaimer::NextWakeUp() const {
  MonoTime due = sweep_at_;
  if (!later_.empty()) due = std::min(due, MonoTime(later_.begin()->first));
  return due;
}

std::optional<Reclaimer::Task> Reclaimer::NextTask() {
  mu_.Lock();
  while (!stop_) {
    if (!new_.empty()) {
      Task task = std::move(new_.front());
      new_.pop_front();
      mu_.Unlock();
      return task;
    }
    const MonoTime now = MonoNow();
    if (!later_.empty() && MonoTime(later_.begin()->first) <= now) {
      Task task = std::move(later_.begin()->second);
      later_.erase(later_.begin());
      mu_.Unlock();
      return task;
    }
    if (sweep_at_ <= now) {
      mu_.Unlock();
      Sweep();
      mu_.Lock();
      continue;
    }
    const MonoTime due = NextWakeUp();
    if (due == MonoTime::Never()) {
      changed_.Wait(&mu_);
    } else {
      changed_.WaitWithTimeout(&mu_, due - now);
    }
  }
  mu_.Unlock();
  return std::nullopt;
}

void Reclaimer::Handle(Task task) {
  PoolMemory& pool = *pool_of_(task.block);
  if (!pagemap_) return Recycle(std::move(task), /*held=*/false);
  const bool may_reuse = !task.order.must_be_fresh;
  Examination found = pool.Examine(task.block, may_reuse ? &*pagemap_ : nullptr);
  if (!found.tampering.empty()) sink_->TamperingFound(task.block, task.order.charge, found.tampering);
  if (may_reuse && found.holding == Holding::kSole && found.witness_complete) {
    return sink_->BlockFree(task.block, /*fresh=*/false);
  }
  const MonoTime now = MonoNow();
  if (may_reuse && found.holding == Holding::kHeld && now < task.give_up) {
    MonoTime due = std::min(now + task.pause, task.give_up);
    task.pause = std::min(task.pause * 2, kLastPause);
    ub::MutexLock lock(&mu_);
    later_.emplace(due.since_start(), std::move(task));
    return;
  }
  Recycle(std::move(task), found.holding == Holding::kHeld);
}

void Reclaimer::Recycle(Task task, bool held) {
  PoolMemory& pool = *pool_of_(task.block);
  OldBacking old{pool.TakeOut(task.block), task.block, std::move(task.order.charge)};
  if (old.backing != nullptr && held) {
    sink_->BackingRetired(task.block, old.charge);
    // It may stand aside for long, and no device needs it again.
    old.backing->registration().Withdraw();
    pool.store().Retire(std::move(old));
    ub::MutexLock lock(&mu_);
    sweep_pause_ = kFirstSweep;
    sweep_at_ = std::min(sweep_at_, MonoNow() + sweep_pause_);
  } else if (old.backing != nullptr) {
    pool.store().Discard(std::move(old));
  }
  std::unique_ptr<MemfdBacking> clean = pool.store().TakeClean();
  if (clean == nullptr) {
    // Told before it waits: once it does, BlockFree may follow at once from the provisioner's thread.
    sink_->BlockRecycling(task.block);
    clean = pool.store().TakeCleanOrWait(task.block);
  }
  if (clean == nullptr) return;
  pool.Install(task.block, std::move(clean));
  sink_->BlockFree(task.block, /*fresh=*/true);
}

void Reclaimer::Sweep() {
  size_t left = 0;
  for (PoolMemory* pool : pools_) left += pool->store().SweepRetired();
  ub::MutexLock lock(&mu_);
  sweep_pause_ = std::clamp(sweep_pause_ * 2, kFirstSweep, kLastSweep);
  sweep_at_ = left == 0 ? MonoTime::Never() : MonoNow() + sweep_pause_;
}

}  // namespace ubd
