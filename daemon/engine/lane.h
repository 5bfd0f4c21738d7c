// One engine thread: polls its queues while there is traffic, lets a Dispatcher do the work, and sleeps in epoll when
// nothing happens. A queue that has been idle for its spin is armed on its own (its client rings an eventfd) and is not
// looked at any more; with all of them armed the thread sleeps until one rings, its ring has results, another thread
// has something for it, or a deadline is over. Without traffic and deadlines it has no timer.
#ifndef UBD_ENGINE_LANE_H_
#define UBD_ENGINE_LANE_H_

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "daemon/engine/dispatcher.h"
#include "daemon/engine/engine_shared.h"
#include "daemon/engine/lane_inbox.h"
#include "daemon/engine/served_queue.h"
#include "daemon/engine/thread_setup.h"
#include "proto/wire/mutex.h"

namespace ubd {

class Lane : public ResultSink, public std::enable_shared_from_this<Lane> {
 public:
  // `ring` and `slow` may be null. `shared` and the workers must outlive the thread.
  static absl::StatusOr<std::shared_ptr<Lane>> Create(EngineShared& shared, std::unique_ptr<FileRing> ring,
                                                      PieceWorker* slow, PieceWorker* copy);
  ~Lane() override;
  // The thread keeps this object alive until it ends.
  void Start(const ThreadPlan& plan);

  // --- any thread; none of these waits for anything but a lock
  void Add(std::shared_ptr<ServedQueue> queue);
  // Drains; EngineShared::queue_gone says when.
  void Close(std::shared_ptr<ServedQueue> queue);
  void LookAtHeldBack() { inbox_.Nudge(); }
  void Deliver(absl::Span<const PieceResult> results) override { inbox_.PostResults(results); }

  // --- the end; for the engine's own thread
  // EngineShared::stopping is set: answers what waits so, posts nothing more.
  void BeginStop();
  // True: nothing is in flight any more.
  bool WaitIdle(uint64_t until_ns);
  // Closes the queues and ends the thread, whatever is in flight. False: it is stuck in the kernel; leave it alone.
  void Quit();
  bool WaitEnd(uint64_t until_ns);
  // Never destroyed: some thread that is stuck may come back to it.
  void LeaveBehind() { kept_ = shared_from_this(); }

  uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  uint64_t queues() const { return queue_count_.load(std::memory_order_relaxed); }
  FileRing* ring() const { return ring_.get(); }

 private:
  Lane(EngineShared& shared, std::unique_ptr<FileRing> ring, const Workers& workers, ub::UniqueFd epoll,
       ub::UniqueFd event);

  // --- lane.cc
  void Run();
  void TakeInbox();
  void MarkIdle();
  bool WaitFor(const bool& flag, uint64_t until_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddHere(const std::shared_ptr<ServedQueue>& queue);
  void CloseHere(const std::shared_ptr<ServedQueue>& queue);
  void StopHere();
  void QuitHere();

  // --- lane_poll.cc
  bool Poll(uint64_t now_ns);
  void List(ServedQueue& queue);
  void Unlist(ServedQueue& queue);
  void Settle(uint64_t now_ns);
  void SettleOne(ServedQueue& queue, uint64_t now_ns);
  bool EndedByItself(ServedQueue& queue);
  void Arm(uint64_t now_ns);
  void HoldForRoom(ServedQueue& queue);
  bool LookForRoom(uint64_t now_ns);
  void Release(std::vector<ServedQueue*>& held);
  void Forget(ServedQueue& queue);
  void Sleep(uint64_t now_ns);
  void Rung(ServedQueue& queue);

  EngineShared& shared_;
  std::unique_ptr<FileRing> ring_;
  const ub::UniqueFd epoll_;
  LaneInbox inbox_;
  LaneInbox::Content content_;
  Dispatcher dispatcher_;
  absl::flat_hash_map<ServedQueue*, std::shared_ptr<ServedQueue>> owned_;
  std::vector<ServedQueue*> polled_;
  std::vector<ServedQueue*> found_;  // of one Poll
  std::vector<ServedQueue*> no_place_;
  std::vector<ServedQueue*> no_room_;
  uint64_t room_look_ns_ = kNeverNs;  // when no_room_ is looked at again
  uint64_t room_pause_ns_ = 0;
  bool stopping_ = false;
  bool quit_ = false;

  std::shared_ptr<Lane> kept_;
  std::atomic<uint64_t> in_flight_ = 0;
  std::atomic<uint64_t> queue_count_ = 0;
  ub::Mutex mu_;
  ub::CondVar changed_;
  bool idle_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = true;
};

}  // namespace ubd

#endif  // UBD_ENGINE_LANE_H_
