#include "ub/lease.h"

#include "absl/strings/str_cat.h"
#include "client/src/lease_impl.h"
#include "proto/wire/error.h"

namespace ub {

Lease::Lease() = default;
Lease::Lease(std::unique_ptr<LeaseImpl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    if (impl_ != nullptr) Release().IgnoreError();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Lease::~Lease() {
  if (impl_ != nullptr) Release().IgnoreError();
}

LeaseId Lease::id() const { return impl_ == nullptr ? LeaseId() : impl_->info().id; }
Generation Lease::generation() const { return impl_ == nullptr ? Generation() : impl_->info().generation; }

const std::string& Lease::pool() const {
  static const auto* const kNone = new std::string;
  return impl_ == nullptr ? *kNone : impl_->info().pool;
}

Access Lease::access() const { return impl_ == nullptr ? Access::kReadOnly : impl_->info().access; }
bool Lease::read_only_advisory() const { return impl_ != nullptr && impl_->info().read_only_advisory; }
std::byte* Lease::data() const { return impl_ == nullptr ? nullptr : impl_->mapping().data(); }
size_t Lease::size() const { return impl_ == nullptr ? 0 : impl_->mapping().size(); }
Bytes Lease::block_size() const { return impl_ == nullptr ? Bytes() : impl_->info().block_bytes; }
Bytes Lease::page_size() const { return impl_ == nullptr ? Bytes() : impl_->info().page_bytes; }

absl::StatusOr<UbAddr> Lease::ub_addr(Bytes offset) const {
  if (offset.count() >= size()) {
    return MakeError(absl::StatusCode::kOutOfRange, Reason::kBadField,
                     absl::StrCat("offset ", offset.count(), " is beyond the end of a lease of ", size(), " bytes"),
                     {{"offset", absl::StrCat(offset.count())}, {"limit", absl::StrCat(size())}});
  }
  const LeaseInfo& info = impl_->info();
  return info.ub_addr[offset / info.block_bytes] + offset % info.block_bytes;
}

std::optional<absl::Duration> Lease::ttl_left() const {
  if (impl_ == nullptr || !impl_->info().expires) return std::nullopt;
  return impl_->info().expires->left();
}

namespace {
absl::Status HoldsNothing() {
  return MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchLease,
                   "this Lease holds nothing: it was never acquired, moved from or released");
}
}  // namespace

absl::StatusOr<Ticket> Lease::Share(const ShareOptions& options) {
  if (impl_ == nullptr) return HoldsNothing();
  if (absl::Status forked = impl_->CheckFork(); !forked.ok()) return forked;
  return impl_->host().Share(*impl_, options);
}

absl::Status Lease::Release() {
  if (impl_ == nullptr) return HoldsNothing();
  if (absl::Status forked = impl_->CheckFork(); !forked.ok()) {
    (void)impl_.release();  // everything behind it is the parent's; see fork_guard.h
    return forked;
  }
  return LeaseImpl::Release(std::move(impl_));
}

bool Lease::alive() const { return impl_ != nullptr && impl_->CheckFork().ok() && impl_->ended() == LeaseEnd::kNot; }

}  // namespace ub
