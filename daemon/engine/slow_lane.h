// The thread and the ring for files on devices that may hang for long (network block devices, device mapper, loop): if
// it is stuck, the lanes are not. It posts what the lanes hand over and sends back what became of it.
#ifndef UBD_ENGINE_SLOW_LANE_H_
#define UBD_ENGINE_SLOW_LANE_H_

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/engine/file_ring.h"
#include "daemon/engine/piece.h"
#include "daemon/engine/thread_setup.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class SlowLane : public PieceWorker, public std::enable_shared_from_this<SlowLane> {
 public:
  static absl::StatusOr<std::shared_ptr<SlowLane>> Create(std::unique_ptr<FileRing> ring);
  ~SlowLane() override;
  // The thread keeps this object alive until it ends.
  void Start(const ThreadPlan& plan);
  // Ends the thread, whatever is in flight, and waits for that. False: it is stuck in the kernel; leave it alone.
  bool Quit(absl::Duration patience);

  void Hand(const PieceOrder& order) override;
  void Cancel(ResultSink* sink, uint64_t tag) override;
  bool Registered(uint32_t slot) const override { return ring_->Registered(slot); }
  FileRing& ring() { return *ring_; }

 private:
  using Name = std::pair<ResultSink*, uint64_t>;
  SlowLane(std::unique_ptr<FileRing> ring, ub::UniqueFd epoll, ub::UniqueFd event);
  void Run();
  void TakeOrders();
  void PostPending();
  bool Reap();
  void CancelOne(const Name& name);
  void Sleep();
  void Ring();

  std::unique_ptr<FileRing> ring_;
  const ub::UniqueFd epoll_;
  const ub::UniqueFd event_;
  // The thread's own.
  struct Posted {
    ResultSink* sink = nullptr;
    uint64_t tag = 0;
    bool registered = false;
  };
  std::deque<PieceOrder> pending_;
  std::vector<Posted> posted_;  // by the ring's tag, less 1
  std::vector<uint64_t> free_tags_;

  ub::Mutex mu_;
  ub::CondVar changed_;
  std::vector<PieceOrder> orders_ ABSL_GUARDED_BY(mu_);
  std::vector<Name> cancels_ ABSL_GUARDED_BY(mu_);
  bool quit_ ABSL_GUARDED_BY(mu_) = false;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace ubd

#endif  // UBD_ENGINE_SLOW_LANE_H_
