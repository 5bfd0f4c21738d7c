// Stand-ins for everything around the RPC server but the Broker, which is the real one: tiny, and steered by the test.
#ifndef UBD_TESTS_UNIT_RPC_FAKES_H_
#define UBD_TESTS_UNIT_RPC_FAKES_H_

#include <sys/mman.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/broker.h"
#include "daemon/memory/memory.h"
#include "daemon/session/server.h"
#include "daemon/telemetry/event_hub.h"
#include "daemon/telemetry/metrics.h"
#include "proto/wire/error.h"
#include "proto/wire/mutex.h"

namespace ubd {

// Memory that is always fit again, as soon as Settle is called.
class FakeMemory : public Memory {
 public:
  explicit FakeMemory(PoolSpec spec) : spec_(std::move(spec)) {}
  void Reclaim(BlockId block, ReclaimOrder) override {
    ub::MutexLock lock(&mu_);
    orders_.push_back(block);
  }
  void DropOwn(BlockId block) override {
    ub::MutexLock lock(&mu_);
    dropped_.push_back(block);
  }
  absl::Status RegisterWith(Registrar*) override { return absl::OkStatus(); }
  uint32_t Slots() const override { return spec_.blocks + 1 + kMostOwn; }
  MappedBlock Locate(BlockId) const override { return {}; }
  absl::StatusOr<BlockId> AddOwn(ub::UniqueFd fd, Bytes offset, Bytes bytes, Access) override {
    ub::MutexLock lock(&mu_);
    if (!fd.valid() || offset != Bytes())
      return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadMemory, "not from its start",
                           {{"field", "offset"}});
    own_bytes_ = bytes;
    return BlockId(spec_.blocks + next_own_++);
  }
  Bytes OwnBytes() {
    ub::MutexLock lock(&mu_);
    return own_bytes_;
  }
  size_t Dropped() {
    ub::MutexLock lock(&mu_);
    return dropped_.size();
  }
  void Start(ReclaimSink*) override {}
  void Stop() override {}
  absl::StatusOr<ub::UniqueFd> OpenForHolder(BlockId, Access) override { return absl::UnimplementedError("not used"); }
  std::vector<PoolFacts> Facts() const override {
    PoolFacts facts;
    facts.spec = spec_;
    facts.page_size = ub::KiB(4);
    facts.locked = "yes";
    facts.reserve = 1;
    return {facts};
  }
  std::string ReuseTest() const override { return "sole-holder"; }

  void Settle(ReclaimSink& sink) {
    std::vector<BlockId> orders;
    {
      ub::MutexLock lock(&mu_);
      orders = std::exchange(orders_, {});
    }
    for (BlockId block : orders) sink.BlockFree(block, true);
  }

 private:
  PoolSpec spec_;
  ub::Mutex mu_;
  std::vector<BlockId> orders_ ABSL_GUARDED_BY(mu_);
  std::vector<BlockId> dropped_ ABSL_GUARDED_BY(mu_);
  uint32_t next_own_ ABSL_GUARDED_BY(mu_) = 0;
  Bytes own_bytes_ ABSL_GUARDED_BY(mu_);
};

class NoWords : public LeaseWords {
 public:
  std::optional<uint32_t> Assign(SessionId, Generation) override { return std::nullopt; }
  void Drop(SessionId, uint32_t, Generation) override {}
  bool TryRecall(SessionId, uint32_t, Generation) override { return false; }
  bool IsIdle(SessionId, uint32_t, Generation) override { return false; }
  void SetPressure(bool) override {}
};

class CountingMetrics : public Metrics {
 public:
  void ObserveRpc(std::string_view method, std::string_view code, absl::Duration) override {
    ub::MutexLock lock(&mu_);
    ++seen_[std::string(method) + " " + std::string(code)];
  }
  void OnEvent(const WatchedEvent&) override {}
  int Seen(const std::string& method_and_code) {
    ub::MutexLock lock(&mu_);
    return seen_[method_and_code];
  }

 private:
  ub::Mutex mu_;
  std::map<std::string, int> seen_ ABSL_GUARDED_BY(mu_);
};

// Delivers at once, or keeps the delivery for the test to finish.
class FakeSession : public Session {
 public:
  explicit FakeSession(SessionFacts facts) : facts_(std::move(facts)) {}
  const SessionFacts& facts() const override { return facts_; }
  uint64_t fds_in_flight() const override { return 0; }
  void Deliver(const Grant&, LeasePin pin, std::function<void(absl::Status)> first) override {
    {
      ub::MutexLock lock(&mu_);
      if (hold_) {
        held_.emplace_back(std::move(pin), std::move(first));
        changed_.SignalAll();
        return;
      }
    }
    first(absl::OkStatus());
  }

  absl::Status DeliverQueue(const ub::wire::QueueGrant& grant, ub::UniqueFd, ub::UniqueFd) override {
    ub::MutexLock lock(&mu_);
    if (!reads_) return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyWaiters, "read first");
    queue_grants_.push_back(grant);
    return absl::OkStatus();
  }
  // Every offer is there, but for number 404.
  void TakeOffer(uint64_t offer, absl::Duration, std::function<void(absl::StatusOr<ub::UniqueFd>)> take) override {
    if (offer == 404) return take(ub::MakeError(absl::StatusCode::kNotFound, ub::Reason::kNoSuchOffer, "none"));
    take(ub::UniqueFd(memfd_create("offer", MFD_CLOEXEC)));
  }
  void StopReading() {
    ub::MutexLock lock(&mu_);
    reads_ = false;
  }
  std::vector<ub::wire::QueueGrant> QueueGrants() {
    ub::MutexLock lock(&mu_);
    return queue_grants_;
  }

  void Hold() {
    ub::MutexLock lock(&mu_);
    hold_ = true;
  }
  void WaitForHeld() {
    ub::MutexLock lock(&mu_);
    while (held_.empty()) changed_.Wait(&mu_);
  }
  void FinishHeld(const absl::Status& status) {
    std::vector<std::pair<LeasePin, std::function<void(absl::Status)>>> held;
    {
      ub::MutexLock lock(&mu_);
      held = std::exchange(held_, {});
    }
    for (auto& [pin, first] : held) first(status);
  }

 private:
  SessionFacts facts_;
  ub::Mutex mu_;
  ub::CondVar changed_;
  bool hold_ ABSL_GUARDED_BY(mu_) = false;
  bool reads_ ABSL_GUARDED_BY(mu_) = true;
  std::vector<ub::wire::QueueGrant> queue_grants_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<LeasePin, std::function<void(absl::Status)>>> held_ ABSL_GUARDED_BY(mu_);
};

// One session with the token "00…01"; every connection is of `uid`, if there is one.
class FakePeers : public SessionRegistry, public ConnectionTable {
 public:
  static constexpr char kToken[] = "00000000000000000000000000000001";
  std::shared_ptr<Session> Find(std::string_view token, Uid uid) const override {
    ub::MutexLock lock(&mu_);
    return session_ && token == kToken && uid == session_->facts().uid ? session_ : nullptr;
  }
  std::shared_ptr<Session> Find(SessionId id) const override {
    ub::MutexLock lock(&mu_);
    return session_ && session_->facts().id == id ? session_ : nullptr;
  }
  uint64_t TakeBacks() const override { return 0; }
  std::optional<RpcPeer> Lookup(std::string_view peer) override {
    ub::MutexLock lock(&mu_);
    if (!peer.starts_with("fd:") || !uid_) return std::nullopt;
    return RpcPeer{*uid_, Gid(uid_->value()), 1};
  }

  void Drop(std::string_view peer) override {
    ub::MutexLock lock(&mu_);
    dropped_.push_back(std::string(peer));
  }
  std::vector<std::string> Dropped() const {
    ub::MutexLock lock(&mu_);
    return dropped_;
  }

  void SetSession(std::shared_ptr<Session> session) {
    ub::MutexLock lock(&mu_);
    session_ = std::move(session);
  }
  void SetUid(std::optional<Uid> uid) {
    ub::MutexLock lock(&mu_);
    uid_ = uid;
  }

 private:
  mutable ub::Mutex mu_;
  std::shared_ptr<Session> session_ ABSL_GUARDED_BY(mu_);
  std::optional<Uid> uid_ ABSL_GUARDED_BY(mu_) = Uid(1000);
  std::vector<std::string> dropped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_TESTS_UNIT_RPC_FAKES_H_
