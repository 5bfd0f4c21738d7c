#include "daemon/memory/own_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {

absl::Status OwnMemory::TakePlace() {
  ub::MutexLock lock(&mu_);
  // The numbers of blocks last for four billion registrations.
  if (count_ >= most_ || next_ + count_ > UINT32_MAX) {
    return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyLeases,
                         absl::StrCat("this node has its limit of ", most_,
                                      " ranges of clients' own memory registered; release some first, or register "
                                      "fewer and larger ones"),
                         {{"limit", absl::StrCat(most_)}});
  }
  ++count_;
  return absl::OkStatus();
}

void OwnMemory::GiveUpPlace() {
  ub::MutexLock lock(&mu_);
  --count_;
}

absl::StatusOr<BlockId> OwnMemory::Add(ub::UniqueFd fd, Bytes offset, Bytes bytes, Access access) {
  if (!IsMemoryFile(fd.get())) {
    closer_.Close(std::move(fd));
    return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadMemory,
                         "fd: must be a memfd (of tmpfs or hugetlbfs)", {{"field", "fd"}});
  }
  if (absl::Status full = TakePlace(); !full.ok()) return full;
  absl::StatusOr<std::unique_ptr<OwnRange>> range = OwnRange::Map(std::move(fd), offset, bytes, access);
  absl::Status status = range.ok() ? (*range)->Register(registry_) : range.status();
  if (!status.ok()) {
    if (range.ok()) range->reset();
    GiveUpPlace();
    return status;
  }
  ub::MutexLock lock(&mu_);
  BlockId block(static_cast<uint32_t>(next_++));
  ranges_.emplace(block, *std::move(range));
  return block;
}

MappedBlock OwnMemory::Locate(BlockId block) const {
  ub::MutexLock lock(&mu_);
  auto found = ranges_.find(block);
  if (found == ranges_.end()) return {};
  return {found->second->address(), found->second->bytes(), found->second->slot()};
}

void OwnMemory::Drop(BlockId block) {
  {
    ub::MutexLock lock(&mu_);
    auto found = ranges_.find(block);
    if (found == ranges_.end()) return;
    dropped_.push_back(std::move(found->second));
    ranges_.erase(found);
  }
  poke_();
}

bool OwnMemory::FreeOne() {
  std::unique_ptr<OwnRange> range;
  {
    ub::MutexLock lock(&mu_);
    if (dropped_.empty()) return false;
    range = std::move(dropped_.front());
    dropped_.pop_front();
  }
  range.reset();
  GiveUpPlace();
  return true;
}

}  // namespace ubd
