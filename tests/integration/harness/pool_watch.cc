#include "tests/integration/harness/pool_watch.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/integration/harness/raw_client.h"

namespace ubd::testing {
namespace {

std::unique_ptr<grpc::ClientContext> Soon() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  return context;
}

bool SumsHold(const ub::v1::Pool& pool) {
  uint64_t sum = 0;
  for (uint64_t part : {pool.blocks_free(), pool.blocks_leased(), pool.blocks_cached(), pool.blocks_draining(),
                        pool.blocks_recycling()}) {
    if (part > pool.blocks_total()) return false;
    sum += part;
  }
  return sum == pool.blocks_total();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PoolWatch>> PoolWatch::Start(const std::string& runtime_dir) {
  auto channel = RawChannel(runtime_dir);
  if (!channel.ok()) return channel.status();
  std::unique_ptr<PoolWatch> watch(new PoolWatch());
  watch->channel_ = *channel;
  watch->admin_ = ub::v1::Admin::NewStub(*channel);
  watch->stream_ = watch->admin_->WatchAll(&watch->context_, {});
  ub::v1::Event first;
  if (!watch->stream_->Read(&first) || first.kind() != ub::v1::Event::WATCHING) {
    return absl::InternalError("WatchAll does not start with WATCHING");
  }
  watch->reader_ = std::thread([raw = watch.get()] { raw->Read(); });
  return watch;
}

PoolWatch::~PoolWatch() {
  context_.TryCancel();
  if (reader_.joinable()) reader_.join();
}

void PoolWatch::Read() {
  ub::v1::Event event;
  while (stream_->Read(&event)) {
    ub::MutexLock lock(&mu_);
    ++counts_[event.kind()];
    ++events_;
    changed_.SignalAll();
  }
  stream_->Finish();
}

absl::Status PoolWatch::WaitUntil(const std::function<bool()>& done, absl::Duration limit) {
  absl::Time end = absl::Now() + limit;
  for (;;) {
    uint64_t seen;
    {
      ub::MutexLock lock(&mu_);
      seen = events_;
    }
    if (done()) return absl::OkStatus();
    if (absl::Now() >= end) return absl::DeadlineExceededError(Describe());
    ub::MutexLock lock(&mu_);
    while (events_ == seen && absl::Now() < end) changed_.WaitWithTimeout(&mu_, end - absl::Now());
  }
}

bool PoolWatch::AllFree() {
  if (Leases().leases_size() != 0) return false;
  ub::v1::PoolList list = Pools();
  for (const auto& pool : list.pools()) {
    if (pool.blocks_free() != pool.blocks_total()) return false;
  }
  return list.pools_size() > 0;
}

absl::Status PoolWatch::WaitUntilAllFree(absl::Duration limit) {
  return WaitUntil([this] { return AllFree(); }, limit);
}

uint64_t PoolWatch::Count(ub::v1::Event::Kind kind) const {
  ub::MutexLock lock(&mu_);
  auto it = counts_.find(kind);
  return it == counts_.end() ? 0 : it->second;
}

std::string PoolWatch::broken_sums() const {
  ub::MutexLock lock(&mu_);
  return broken_;
}

ub::v1::Status PoolWatch::Status() {
  ub::v1::Status status;
  admin_->GetStatus(Soon().get(), {}, &status);
  return status;
}

ub::v1::PoolList PoolWatch::Pools() {
  ub::v1::PoolList list;
  grpc::Status status = admin_->ListPools(Soon().get(), {}, &list);
  ub::MutexLock lock(&mu_);
  if (!status.ok() && broken_.empty()) broken_ = "ListPools failed: " + status.error_message();
  for (const auto& pool : list.pools()) {
    if (!SumsHold(pool) && broken_.empty()) broken_ = pool.ShortDebugString();
  }
  return list;
}

ub::v1::LeaseList PoolWatch::Leases() {
  ub::v1::LeaseList list;
  grpc::Status status = admin_->ListLeases(Soon().get(), {}, &list);
  ub::MutexLock lock(&mu_);
  if (!status.ok() && broken_.empty()) broken_ = "ListLeases failed: " + status.error_message();
  return list;
}

std::string PoolWatch::Describe() {
  return absl::StrCat("not as expected in time: ", Pools().ShortDebugString(), "; ", Leases().ShortDebugString());
}

}  // namespace ubd::testing
