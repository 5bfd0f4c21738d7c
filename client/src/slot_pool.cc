#include "ub/slot_pool.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "client/src/fork_guard.h"
#include "client/src/lease_impl.h"
#include "client/src/slot_magazines.h"
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

class SlotPool::Impl {
 public:
  Impl(Lease lease, Bytes slot)
      : lease_(std::move(lease)),
        base_(lease_.data()),
        slot_bytes_(slot.count()),
        block_bytes_(lease_.block_size().count()),
        per_block_(static_cast<uint32_t>(block_bytes_ / slot_bytes_)),
        slots_(per_block_ * static_cast<uint32_t>(lease_.size() / block_bytes_)),
        magazines_(slots_) {}

  // Slots are packed from the start of each block; what is left at its end is not used.
  size_t OffsetOf(uint32_t slot) const { return slot / per_block_ * block_bytes_ + slot % per_block_ * slot_bytes_; }

  const Lease& lease() const { return lease_; }
  Lease& lease() { return lease_; }
  std::byte* base() const { return base_; }
  size_t slot_bytes() const { return slot_bytes_; }
  uint32_t slots() const { return slots_; }
  SlotMagazines& magazines() { return magazines_; }
  const ForkGuard& guard() const { return guard_; }

 private:
  Lease lease_;
  std::byte* const base_;
  const size_t slot_bytes_;
  const size_t block_bytes_;
  const uint32_t per_block_;
  const uint32_t slots_;
  SlotMagazines magazines_;
  ForkGuard guard_;
};

absl::StatusOr<std::unique_ptr<SlotPool>> SlotPool::Create(Client& client, const SlotPoolOptions& options) {
  if (absl::Status bad = CheckOptions(options); !bad.ok()) return bad;
  absl::StatusOr<Lease> lease = client.Acquire({.pool = options.pool, .bytes = options.bytes, .wait = options.wait});
  if (!lease.ok()) return lease.status();
  if (options.slot > lease->block_size())
    return BadOption("slot", "larger than a block: a slot never crosses a block border");
  if (lease->size() / options.slot.count() > UINT32_MAX) return BadOption("slot", "too small: more than 2^32 slots");
  return std::unique_ptr<SlotPool>(new SlotPool(std::make_unique<Impl>(*std::move(lease), options.slot)));
}

SlotPool::SlotPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SlotPool::~SlotPool() {
  // In a forked child everything behind it is the parent's; see fork_guard.h.
  if (impl_->guard().forked()) (void)impl_.release();
}

Slot SlotPool::Take() {
  if (impl_->guard().forked()) return Slot();
  std::optional<uint32_t> slot = impl_->magazines().Take();
  return slot ? Slot(this, *slot) : Slot();
}

uint32_t SlotPool::slots() const { return impl_->slots(); }
size_t SlotPool::slot_size() const { return impl_->slot_bytes(); }

absl::Status SlotPool::Check() const {
  if (absl::Status forked = impl_->guard().Check(); !forked.ok()) return forked;
  return LeaseEndError(LeaseImpl::Of(impl_->lease())->ended());
}

std::byte* Slot::data() const {
  return pool_ == nullptr ? nullptr : pool_->impl_->base() + pool_->impl_->OffsetOf(index_);
}
size_t Slot::size() const { return pool_ == nullptr ? 0 : pool_->impl_->slot_bytes(); }

UbAddr Slot::ub_addr() const {
  if (pool_ == nullptr) return UbAddr();
  return pool_->impl_->lease().ub_addr(Bytes(pool_->impl_->OffsetOf(index_))).value_or(UbAddr());
}

void Slot::Return() {
  SlotPool* pool = std::exchange(pool_, nullptr);
  if (pool != nullptr && !pool->impl_->guard().forked()) pool->impl_->magazines().Return(index_);
}

}  // namespace ub
