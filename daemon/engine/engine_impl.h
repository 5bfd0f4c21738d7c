// The Engine: who has which queue on which lane. Lanes do the work (lane.h); this is the table.
#ifndef UBD_ENGINE_ENGINE_IMPL_H_
#define UBD_ENGINE_ENGINE_IMPL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/engine/copy_lane.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/engine_shared.h"
#include "daemon/engine/lane.h"
#include "daemon/engine/served_queue.h"
#include "daemon/engine/slow_lane.h"
#include "daemon/engine/watched_ring.h"
#include "proto/wire/mutex.h"

namespace ubd {

class EngineImpl : public Engine {
 public:
  // `shared` outlives the engine where a thread is stuck for good.
  EngineImpl(const EngineOptions& options, Memory& memory)
      : shared_(std::make_unique<EngineShared>(options, memory)), copy_(std::make_unique<CopyLane>()) {}
  ~EngineImpl() override;
  absl::Status MakeLanes();

  void Start(Broker& broker) override;
  uint64_t Stop(absl::Duration grace) override;
  void OpenSession(SessionId session, Uid uid, int32_t pid) override;
  void CloseSession(SessionId session) override;
  absl::StatusOr<OpenedQueue> OpenQueue(const QueueRequest& request) override;
  absl::Status CloseQueue(SessionId session, uint32_t queue) override;
  absl::StatusOr<OpenedFile> OpenFile(SessionId session, ub::UniqueFd file) override;
  absl::Status CloseFile(SessionId session, uint32_t handle) override;
  void SetPolicy(ub::wire::PathPolicy policy) override { shared_->policy.store(policy); }
  void SetMinDirect(Bytes storage, Bytes network) override {
    shared_->min_direct_storage.store(storage.count());
    shared_->min_direct_network.store(network.count());
  }
  PathStatus Paths() const override;
  std::vector<QueueListing> Queues() const override;
  const EngineOptions& options() const override { return shared_->options; }

 private:
  struct Entry {
    std::shared_ptr<ServedQueue> queue;
    Lane* lane = nullptr;
    bool closing = false;
  };
  struct Member {
    std::shared_ptr<EngineSession> session;
    uint32_t next_queue = 1;
    uint32_t open_queues = 0;
  };
  using QueueKey = std::pair<SessionId, uint32_t>;

  absl::Status MakeRings(std::vector<std::unique_ptr<FileRing>>& rings);
  absl::Status RegisterRings();
  absl::StatusOr<std::shared_ptr<EngineSession>> FindSession(SessionId session) const;
  absl::Status MayOpen(const Member& member) const;
  Lane& LeastBusy() const;
  void QueueGone(const ServedQueue& queue);
  ThreadPlan PlanFor(const std::string& name) const;

  std::unique_ptr<EngineShared> shared_;
  std::unique_ptr<CopyLane> copy_;
  std::shared_ptr<SlowLane> slow_;
  std::vector<std::shared_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<WatchedRing>> watched_;  // the lanes' and, last, the slow one's
  std::string no_engine_;                              // why there is no io_uring; empty: there is
  bool started_ = false;

  mutable ub::Mutex mu_;
  absl::flat_hash_map<SessionId, Member> sessions_ ABSL_GUARDED_BY(mu_);
  absl::btree_map<QueueKey, Entry> queues_ ABSL_GUARDED_BY(mu_);  // draining ones too
};

}  // namespace ubd

#endif  // UBD_ENGINE_ENGINE_IMPL_H_
