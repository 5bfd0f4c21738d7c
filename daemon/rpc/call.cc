#include "daemon/rpc/call.h"

#include <malloc.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ubd {
namespace {

// Open calls at once that no honest load has, and so few that the flood is over.
constexpr size_t kFlood = 4096;
constexpr size_t kCalm = 64;

}  // namespace

Call::Call() {
  for (size_t i = 0; i < tags_.size(); ++i) tags_[i] = {this, static_cast<Op>(i), nullptr};
}

void* Call::Arm(Op op) {
  ub::MutexLock lock(&tags_mu_);
  Tag& tag = tags_[static_cast<size_t>(op)];
  tag.keep = shared_from_this();
  return &tag;
}

void Call::Disarm(Op op) {
  std::shared_ptr<Call> keep;
  ub::MutexLock lock(&tags_mu_);
  keep = std::exchange(tags_[static_cast<size_t>(op)].keep, nullptr);
}

void Call::Dispatch(void* raw, bool ok) {
  Tag* tag = static_cast<Tag*>(raw);
  Call* call = tag->call;
  std::shared_ptr<Call> keep;
  {
    ub::MutexLock lock(&call->tags_mu_);
    keep = std::exchange(tag->keep, nullptr);
  }
  call->OnOp(tag->op, ok);
}

void CallTable::Request(const std::function<void()>& request) {
  ub::MutexLock lock(&mu_);
  if (!closed_) request();
}

std::optional<absl::Status> CallTable::Opened(Call* call) {
  ub::MutexLock lock(&mu_);
  open_.insert(call);
  return ending_;
}

void CallTable::Closed(Call* call) {
  bool trim = false;
  {
    ub::MutexLock lock(&mu_);
    most_ = std::max(most_, open_.size());
    open_.erase(call);
    if (open_.empty()) changed_.SignalAll();
    trim = open_.size() <= kCalm && CalmAgain();
  }
  // What a flood took is free by now, but the allocator keeps it.
  if (trim) malloc_trim(0);
}

// True when a flood has just ended, and once more a second later: the connections go after their calls.
bool CallTable::CalmAgain() {
  if (most_ < kFlood && trim_again_ == MonoTime::Never()) return false;
  const MonoTime now = SystemClock().Now();
  if (most_ >= kFlood) {
    most_ = 0;
    trim_again_ = now + absl::Seconds(1);
    return true;
  }
  if (now < trim_again_) return false;
  trim_again_ = MonoTime::Never();
  return true;
}

void CallTable::EndStreams(const absl::Status& status) {
  std::vector<std::shared_ptr<Call>> calls;
  {
    ub::MutexLock lock(&mu_);
    ending_ = status;
    for (Call* call : open_) calls.push_back(call->shared_from_this());
  }
  for (const auto& call : calls) call->EndStream(status);
}

void CallTable::WaitUntilNone(absl::Duration most) {
  const MonoTime end = SystemClock().Now() + most;
  ub::MutexLock lock(&mu_);
  while (!open_.empty()) {
    const absl::Duration left = end - SystemClock().Now();
    if (left <= absl::ZeroDuration()) return;
    changed_.WaitWithTimeout(&mu_, left);
  }
}

void CallTable::Close() {
  ub::MutexLock lock(&mu_);
  closed_ = true;
  while (!open_.empty()) changed_.Wait(&mu_);
}

}  // namespace ubd
