// An engine without threads and rings: remembers what is open, and does what the test says.
#ifndef UBD_TESTS_UNIT_RPC_FAKE_ENGINE_H_
#define UBD_TESTS_UNIT_RPC_FAKE_ENGINE_H_

#include <sys/eventfd.h>
#include <sys/mman.h>

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/engine/engine.h"
#include "proto/wire/error.h"
#include "proto/wire/mutex.h"

namespace ubd {

class FakeEngine : public Engine {
 public:
  using Key = std::pair<uint64_t, uint32_t>;  // session, queue or file

  void Start(Broker&) override {}
  uint64_t Stop(absl::Duration) override { return 0; }
  void OpenSession(SessionId, Uid, int32_t) override {}
  void CloseSession(SessionId) override {}

  absl::StatusOr<OpenedQueue> OpenQueue(const QueueRequest& request) override {
    ub::MutexLock lock(&mu_);
    OpenedQueue queue;
    queue.id = ++last_;
    queue.layout = {request.sq_entries, request.cq_entries};
    queue.memory.reset(memfd_create("queue", MFD_CLOEXEC));
    queue.event.reset(eventfd(0, EFD_CLOEXEC));
    queues_.insert({request.session.value(), queue.id});
    policy_of_last_ = request.policy;
    return queue;
  }
  absl::Status CloseQueue(SessionId session, uint32_t queue) override {
    ub::MutexLock lock(&mu_);
    return Erase(queues_, {session.value(), queue}, ub::Reason::kNoSuchQueue);
  }
  absl::StatusOr<OpenedFile> OpenFile(SessionId session, ub::UniqueFd file) override {
    std::function<void()> wait;
    {
      ub::MutexLock lock(&mu_);
      wait = wait_;
    }
    if (wait) wait();
    ub::MutexLock lock(&mu_);
    ++opens_;
    if (!file.valid()) return absl::InternalError("no descriptor came");
    OpenedFile opened;
    opened.facts = facts;
    if (facts.trusted) {
      opened.handle = ++last_;
      files_.insert({session.value(), opened.handle});
    }
    return opened;
  }
  absl::Status CloseFile(SessionId session, uint32_t handle) override {
    ub::MutexLock lock(&mu_);
    return Erase(files_, {session.value(), handle}, ub::Reason::kNoSuchFile);
  }
  void SetPolicy(ub::wire::PathPolicy policy) override {
    ub::MutexLock lock(&mu_);
    paths_.policy = policy;
  }
  void SetMinDirect(Bytes storage, Bytes network) override {
    ub::MutexLock lock(&mu_);
    paths_.min_direct_storage = storage;
    paths_.min_direct_network = network;
  }
  PathStatus Paths() const override {
    ub::MutexLock lock(&mu_);
    return paths_;
  }
  std::vector<QueueListing> Queues() const override {
    ub::MutexLock lock(&mu_);
    return listing_;
  }
  const EngineOptions& options() const override { return options_; }

  // --- for the test
  FileFacts facts;  // set before the first call
  void WaitInOpenFile(std::function<void()> wait) {
    ub::MutexLock lock(&mu_);
    wait_ = std::move(wait);
  }
  void SetListing(std::vector<QueueListing> listing) {
    ub::MutexLock lock(&mu_);
    listing_ = std::move(listing);
  }
  size_t QueuesOpen() const {
    ub::MutexLock lock(&mu_);
    return queues_.size();
  }
  size_t FilesOpen() const {
    ub::MutexLock lock(&mu_);
    return files_.size();
  }
  int Opens() const {
    ub::MutexLock lock(&mu_);
    return opens_;
  }
  ub::wire::PathPolicy policy_of_last() const {
    ub::MutexLock lock(&mu_);
    return policy_of_last_;
  }

 private:
  static absl::Status Erase(std::set<Key>& from, Key key, ub::Reason reason) {
    if (from.erase(key) == 1) return absl::OkStatus();
    return ub::MakeError(absl::StatusCode::kNotFound, reason, "there is none of this number");
  }

  EngineOptions options_;
  mutable ub::Mutex mu_;
  uint32_t last_ ABSL_GUARDED_BY(mu_) = 0;
  int opens_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<Key> queues_ ABSL_GUARDED_BY(mu_), files_ ABSL_GUARDED_BY(mu_);
  std::function<void()> wait_ ABSL_GUARDED_BY(mu_);
  std::vector<QueueListing> listing_ ABSL_GUARDED_BY(mu_);
  ub::wire::PathPolicy policy_of_last_ ABSL_GUARDED_BY(mu_) = ub::wire::PathPolicy::kDefault;
  PathStatus paths_ ABSL_GUARDED_BY(mu_) = {
      ub::wire::PathPolicy::kPreferDirect, ub::KiB(256), ub::KiB(64), "io_uring", true, "5 of 5 backings", {}};
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_RPC_FAKE_ENGINE_H_
