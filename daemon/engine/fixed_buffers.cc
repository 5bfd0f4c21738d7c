#include "daemon/engine/fixed_buffers.h"

#include <sys/resource.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

absl::Status TooMuch(const std::string& text, uint64_t wanted, uint64_t limit) {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kPoolDoesNotFit, text,
                       {{"wanted", std::to_string(wanted)}, {"limit", std::to_string(limit)}});
}

absl::Status TooManySlots(uint32_t slots) {
  return TooMuch(absl::StrCat("io_uring takes at most ", FixedBuffers::kMostSlots, " buffers, and the pools have ",
                              slots, " backings with their reserves: use larger blocks"),
                 slots, FixedBuffers::kMostSlots);
}

absl::Status MemlockRefuses(Bytes bytes) {
  struct rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
  std::string most = unlimited ? "unlimited" : ub::FormatSize(Bytes(limit.rlim_cur));
  return TooMuch(absl::StrCat("the kernel did not let io_uring pin ", ub::FormatSize(bytes),
                              " (memlock limit of this user: ", most,
                              "): set LimitMEMLOCK=infinity in the unit, or run `ulimit -l unlimited` before ubd"),
                 bytes.count(), unlimited ? UINT64_MAX : limit.rlim_cur);
}

absl::Status KernelRefuses(int error, const char* what) {
  return ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kKernelRefused,
                       absl::StrCat("io_uring did not take ", what, ": ", std::strerror(error)),
                       {{"call", "io_uring_register"}, {"errno", std::to_string(error)}});
}

}  // namespace

FixedBuffers::FixedBuffers(io_uring* ring, uint32_t slots, Demand demand)
    : ring_(ring), demand_(demand), places_(slots) {}

absl::Status FixedBuffers::MakeTable() {
  ub::MutexLock lock(&mu_);
  if (demand_ == Demand::kOff || places_.empty()) return absl::OkStatus();
  const auto slots = static_cast<uint32_t>(places_.size());
  if (slots > kMostSlots && demand_ == Demand::kRequired) return TooManySlots(slots);
  const uint32_t table = std::min(slots, kMostSlots);
  int result = ::io_uring_register_buffers_sparse(ring_, table);
  if (result == 0) {
    table_ = table;
    return absl::OkStatus();
  }
  absl::Status why = KernelRefuses(-result, "a sparse table of buffers (kernels from 5.19 do)");
  if (demand_ == Demand::kRequired) return why;
  refusal_ = std::string(why.message());
  LogWarn("blocks cannot be registered with io_uring: it pins memory for each transfer", {{"why", refusal_}});
  return absl::OkStatus();
}

absl::Status FixedBuffers::CheckLimits(uint32_t slot, Bytes bytes) const {
  ub::MutexLock lock(&mu_);
  if (slot >= places_.size()) {
    return ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kKernelRefused,
                         absl::StrCat("backing ", slot, " of ", places_.size()));
  }
  if (slot >= kMostSlots) return TooManySlots(static_cast<uint32_t>(places_.size()));
  if (bytes > kLargest)
    return TooMuch("io_uring buffers end at 1GiB: use smaller blocks", bytes.count(), kLargest.count());
  if (slot >= table_) return ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kKernelRefused, refusal_);
  if (refused_bytes_.count() != 0 && bytes >= refused_bytes_) return MemlockRefuses(bytes);
  return absl::OkStatus();
}

absl::Status FixedBuffers::Register(uint32_t slot, void* address, Bytes bytes) {
  {
    ub::MutexLock lock(&mu_);
    if (slot < places_.size() && !std::exchange(places_[slot].offered, true)) ++offered_;
  }
  if (demand_ == Demand::kOff) return absl::OkStatus();
  if (absl::Status over = CheckLimits(slot, bytes); !over.ok()) return Refuse(std::move(over));
  const iovec range = {address, bytes.count()};
  const __u64 tag = 0;
  int result = ::io_uring_register_buffers_update_tag(ring_, slot, &range, &tag, 1);
  if (result < 0) {
    const bool memlock = result == -ENOMEM;
    if (memlock) {
      ub::MutexLock lock(&mu_);
      if (refused_bytes_.count() == 0 || bytes < refused_bytes_) refused_bytes_ = bytes;
    }
    return Refuse(memlock ? MemlockRefuses(bytes) : KernelRefuses(-result, "a block as its buffer"));
  }
  ub::MutexLock lock(&mu_);
  if (places_[slot].address == nullptr) ++registered_;
  places_[slot].address = address;
  places_[slot].bytes = bytes;
  return absl::OkStatus();
}

absl::Status FixedBuffers::Refuse(absl::Status why) {
  if (demand_ == Demand::kRequired) return why;
  ub::MutexLock lock(&mu_);
  if (!refusal_.empty()) return absl::OkStatus();
  refusal_ = std::string(why.message());
  LogWarn("not all blocks are registered with io_uring: it pins the others for each transfer", {{"why", refusal_}});
  return absl::OkStatus();
}

void FixedBuffers::Unregister(uint32_t slot) {
  {
    ub::MutexLock lock(&mu_);
    if (slot >= places_.size()) return;
    Place was = std::exchange(places_[slot], Place());
    if (was.offered) --offered_;
    if (was.address == nullptr) return;
    --registered_;
  }
  // Never waits: what is in flight keeps its pages until it completes.
  const iovec nothing = {};
  const __u64 tag = 0;
  int result = ::io_uring_register_buffers_update_tag(ring_, slot, &nothing, &tag, 1);
  if (result < 0) {
    LogWarn("io_uring kept a block's memory pinned until its place is used again",
            {{"slot", std::to_string(slot)}, {"error", std::strerror(-result)}});
  }
  ub::MutexLock lock(&mu_);
  refused_bytes_ = Bytes(0);
}

bool FixedBuffers::Registered(uint32_t slot) const {
  ub::MutexLock lock(&mu_);
  return slot < places_.size() && places_[slot].address != nullptr;
}

bool FixedBuffers::Holds(uint32_t slot, const void* address, uint64_t length) const {
  ub::MutexLock lock(&mu_);
  if (slot >= places_.size() || places_[slot].address == nullptr) return false;
  const auto start = reinterpret_cast<uintptr_t>(places_[slot].address);
  const auto at = reinterpret_cast<uintptr_t>(address);
  const uint64_t bytes = places_[slot].bytes.count();
  return at >= start && at - start <= bytes && length <= bytes - (at - start);
}

std::string FixedBuffers::Text() const {
  ub::MutexLock lock(&mu_);
  std::string text = absl::StrCat(registered_, " of ", offered_, " backings");
  if (demand_ == Demand::kOff) return text + ": registration is off (register_blocks)";
  if (!refusal_.empty() && (registered_ < offered_ || offered_ == 0)) absl::StrAppend(&text, ": ", refusal_);
  return text;
}

}  // namespace ubd
