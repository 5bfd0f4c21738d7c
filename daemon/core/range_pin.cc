#include <utility>

#include "daemon/core/broker.h"

namespace ubd {

RangePin::RangePin(RangePin&& other) noexcept
    : broker_(std::exchange(other.broker_, nullptr)), lease_(other.lease_), pieces_(std::move(other.pieces_)) {}

RangePin& RangePin::operator=(RangePin&& other) noexcept {
  if (this == &other) return *this;
  if (broker_ != nullptr) broker_->UnpinRange(lease_, pieces_);
  broker_ = std::exchange(other.broker_, nullptr);
  lease_ = other.lease_;
  pieces_ = std::move(other.pieces_);
  return *this;
}

RangePin::~RangePin() {
  if (broker_ != nullptr) broker_->UnpinRange(lease_, pieces_);
}

}  // namespace ubd
