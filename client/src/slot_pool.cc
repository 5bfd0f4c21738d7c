#include "ub/slot_pool.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/slot_pool_impl.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

absl::Status BadOption(std::string_view field, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                   absl::StrCat("SlotPoolOptions.", std::string(field), ": ", std::string(why)),
                   {{"field", std::string(field)}});
}

absl::Status CheckOptions(const SlotPoolOptions& options) {
  if (options.slot < Bytes(64) || options.slot.count() % 64 != 0)
    return BadOption("slot", "must be a multiple of 64, at least 64");
  if (options.bytes < options.slot) return BadOption("bytes", "must be at least one slot");
  return absl::OkStatus();
}

}  // namespace

SlotPoolImpl::SlotPoolImpl(Lease lease, Bytes slot)
    : lease_(std::move(lease)),
      base_(lease_.data()),
      slot_bytes_(slot.count()),
      block_bytes_(lease_.block_size().count()),
      per_block_(static_cast<uint32_t>(block_bytes_ / slot_bytes_)),
      slots_(per_block_ * static_cast<uint32_t>(lease_.size() / block_bytes_)),
      magazines_(slots_) {}

SlotPoolImpl::~SlotPoolImpl() {
  delete[] uses_.load();
  // Whoever polls the last completion must not wait for the daemon.
  LeaseImpl::ReleaseLater(std::move(lease_));
}

UseCount* SlotPoolImpl::Uses() {
  UseCount* uses = uses_.load(std::memory_order_acquire);
  if (uses != nullptr) return uses;
  auto fresh = std::make_unique<UseCount[]>(slots_);
  if (!uses_.compare_exchange_strong(uses, fresh.get())) return uses;
  return fresh.release();
}

void SlotPoolImpl::BeginTransfer(uint32_t slot) {
  transfers_.Begin();
  Uses()[slot].Begin();
}

void SlotPoolImpl::EndTransfer(uint32_t slot, bool known) {
  if (!known) lease_impl()->MarkInDoubt();
  if (known && Uses()[slot].End()) magazines_.Return(slot);
  if (transfers_.End()) delete this;
}

void SlotPoolImpl::Release(std::unique_ptr<SlotPoolImpl> pool) {
  SlotPoolImpl* raw = pool.release();
  if (raw->transfers_.Park()) return;
  raw->lease_.Release().IgnoreError();
  delete raw;
}

absl::StatusOr<std::unique_ptr<SlotPool>> SlotPool::Create(Client& client, const SlotPoolOptions& options) {
  if (absl::Status bad = CheckOptions(options); !bad.ok()) return bad;
  absl::StatusOr<Lease> lease = client.Acquire({.pool = options.pool, .bytes = options.bytes, .wait = options.wait});
  if (!lease.ok()) return lease.status();
  if (options.slot > lease->block_size())
    return BadOption("slot", "larger than a block: a slot never crosses a block border");
  if (lease->size() / options.slot.count() > UINT32_MAX) return BadOption("slot", "too small: more than 2^32 slots");
  return std::unique_ptr<SlotPool>(new SlotPool(std::make_unique<SlotPoolImpl>(*std::move(lease), options.slot)));
}

SlotPool::SlotPool(std::unique_ptr<SlotPoolImpl> impl) : impl_(std::move(impl)) {}

SlotPool::~SlotPool() {
  // In a forked child everything behind it is the parent's; see fork_guard.h.
  if (impl_->guard().forked()) {
    (void)impl_.release();
    return;
  }
  SlotPoolImpl::Release(std::move(impl_));
}

Slot SlotPool::Take() {
  if (impl_->guard().forked()) return Slot();
  std::optional<uint32_t> slot = impl_->Take();
  return slot ? Slot(impl_.get(), *slot) : Slot();
}

uint32_t SlotPool::slots() const { return impl_->slots(); }
size_t SlotPool::slot_size() const { return impl_->slot_bytes(); }

absl::Status SlotPool::Check() const {
  if (absl::Status forked = impl_->guard().Check(); !forked.ok()) return forked;
  return LeaseEndError(LeaseImpl::Of(impl_->lease())->ended());
}

std::byte* Slot::data() const { return pool_ == nullptr ? nullptr : pool_->base() + pool_->OffsetOf(index_); }
size_t Slot::size() const { return pool_ == nullptr ? 0 : pool_->slot_bytes(); }

UbAddr Slot::ub_addr() const {
  if (pool_ == nullptr) return UbAddr();
  return pool_->lease().ub_addr(Bytes(pool_->OffsetOf(index_))).value_or(UbAddr());
}

void Slot::Return() {
  SlotPoolImpl* pool = std::exchange(pool_, nullptr);
  if (pool != nullptr && !pool->guard().forked()) pool->Return(index_);
}

}  // namespace ub
