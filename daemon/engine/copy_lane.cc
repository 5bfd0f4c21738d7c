#include "daemon/engine/copy_lane.h"

#include "daemon/engine/safe_copy.h"

namespace ubd {

void CopyLane::Start(const ThreadPlan& plan) {
  thread_ = std::thread([this, plan] {
    ApplyToThisThread(plan);
    Run();
  });
}

CopyLane::~CopyLane() {
  {
    ub::MutexLock lock(&mu_);
    quit_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void CopyLane::Hand(const PieceOrder& order) {
  ub::MutexLock lock(&mu_);
  orders_.push_back(order);
  changed_.Signal();
}

void CopyLane::Run() {
  while (true) {
    PieceOrder order;
    {
      ub::MutexLock lock(&mu_);
      while (orders_.empty() && !quit_) changed_.Wait(&mu_);
      if (orders_.empty()) return;
      order = orders_.front();
      orders_.pop_front();
    }
    int error = 0;
    const uint64_t moved = SafeCopy(order.piece.address, order.from, order.piece.length, error);
    const PieceResult result = {
        .tag = order.piece.tag, .result = error == 0 ? static_cast<int32_t>(moved) : -error, .registered = false};
    order.sink->Deliver({&result, 1});
  }
}

}  // namespace ubd
