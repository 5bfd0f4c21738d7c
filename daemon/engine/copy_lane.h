// The thread that copies memory to memory, a piece at a time, for all lanes. Copies are made by the kernel (SafeCopy):
// a page that a client has taken away is an error of that copy only.
#ifndef UBD_ENGINE_COPY_LANE_H_
#define UBD_ENGINE_COPY_LANE_H_

#include <deque>
#include <thread>

#include "daemon/engine/piece.h"
#include "daemon/engine/thread_setup.h"
#include "proto/wire/mutex.h"

namespace ubd {

class CopyLane : public PieceWorker {
 public:
  CopyLane() = default;
  // Ends the thread. What is still handed over is copied first.
  ~CopyLane() override;
  void Start(const ThreadPlan& plan);

  void Hand(const PieceOrder& order) override;
  // A copy takes too short to be given up.
  void Cancel(ResultSink* /*sink*/, uint64_t /*tag*/) override {}
  bool Registered(uint32_t /*slot*/) const override { return false; }

 private:
  void Run();

  ub::Mutex mu_;
  ub::CondVar changed_;
  std::deque<PieceOrder> orders_ ABSL_GUARDED_BY(mu_);
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace ubd

#endif  // UBD_ENGINE_COPY_LANE_H_
