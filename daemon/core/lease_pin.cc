#include "daemon/core/broker.h"

namespace ubd {

LeasePin::LeasePin(LeasePin&& other) noexcept
    : broker_(std::exchange(other.broker_, nullptr)), lease_(other.lease_), blocks_(std::move(other.blocks_)) {}

LeasePin& LeasePin::operator=(LeasePin&& other) noexcept {
  if (this == &other) return *this;
  if (broker_ != nullptr) broker_->Unpin(lease_);
  broker_ = std::exchange(other.broker_, nullptr);
  lease_ = other.lease_;
  blocks_ = std::move(other.blocks_);
  return *this;
}

LeasePin::~LeasePin() {
  if (broker_ != nullptr) broker_->Unpin(lease_);
}

}  // namespace ubd
