// One session with the daemon, as libub's Client and its leases use it: lifeline, RPCs, cache and events put together.
// Thread-safe. Every call ends by its deadline, whatever the daemon does. Not fork-aware: Client and Lease ask first
// (fork_guard.h).
#ifndef UB_SRC_SESSION_H_
#define UB_SRC_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/broker_rpc.h"
#include "client/src/event_stream.h"
#include "client/src/grant_inbox.h"
#include "client/src/lease_cache.h"
#include "client/src/lease_impl.h"
#include "client/src/lease_registry.h"
#include "client/src/lifeline_client.h"
#include "client/src/session_transfers.h"
#include "proto/wire/mutex.h"
#include "ub/client.h"

namespace ub {

class Session final : public LeaseHost, private EventSink {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Open(const ConnectOptions& options);
  // Gives the cache back, as far as the daemon answers within two seconds; the rest ends with the session.
  ~Session() override;

  absl::StatusOr<Lease> Acquire(const AcquireOptions& options);
  absl::StatusOr<Lease> Attach(const Ticket& ticket, Deadline deadline);
  absl::StatusOr<Lease> Register(int fd, const RegisterOptions& options);
  absl::Status Ping(Deadline deadline);
  absl::Status DropCache(Deadline deadline);
  void OnEvent(EventCallback callback);
  SessionId id() const { return lifeline_->session(); }
  ClientStats stats() const;
  TransferHost& transfers() { return transfers_; }

  // LeaseHost
  absl::Status GiveBack(std::unique_ptr<LeaseImpl> lease) override;
  void GiveBackLater(std::unique_ptr<LeaseImpl> lease) override;
  absl::StatusOr<Ticket> Share(LeaseImpl& lease, const ShareOptions& options) override;

 private:
  Session(std::unique_ptr<LifelineClient> lifeline, std::shared_ptr<grpc::Channel> channel, Bytes cache_limit);

  // session_acquire.cc
  absl::StatusOr<Lease> AcquireFromDaemon(const AcquireOptions& options, absl::Duration wait);
  absl::StatusOr<v1::Lease> CallAcquire(const v1::AcquireRequest& request, Deadline deadline);
  absl::StatusOr<Lease> TakeIn(const v1::Lease& granted, bool cacheable, Deadline deadline);
  absl::StatusOr<Mapping> MapOwn(int fd, const LeaseInfo& info, const RegisterOptions& options);
  absl::Status ReceiveMemory(const LeaseInfo& info, Mapping& mapping, Deadline deadline);
  bool MakeRoom();

  absl::Status ReleaseNow(std::unique_ptr<LeaseImpl> lease, Deadline deadline);
  absl::Status CheckConnected() const;
  void CountRecalled(const LeaseList& dead) { recalled_.fetch_add(dead.size(), std::memory_order_relaxed); }

  // session_events.cc
  absl::Status AwaitWatching(Deadline deadline);
  void SetWatching(const absl::Status& status);
  void OnDaemonEvent(const v1::Event& event) override;
  void OnStreamEnd(const absl::Status& why) override;
  void EndLease(LeaseId lease, LeaseEnd end, Event::Kind kind, const std::string& text);
  // For what events do not tell (any more): compares with the daemon's own list.
  void Recheck();
  void Tell(const Event& event);

  // Destroyed from the bottom up: the events first, the lifeline last.
  const std::unique_ptr<LifelineClient> lifeline_;
  BrokerRpc rpc_;
  GrantInbox inbox_;
  LeaseRegistry registry_;
  LeaseCache cache_;
  std::atomic<bool> disconnected_{false};
  std::atomic<uint64_t> next_request_{1};
  std::atomic<uint64_t> leases_{0};
  std::atomic<uint64_t> cache_hits_{0};
  std::atomic<uint64_t> recalled_{0};
  std::atomic<uint64_t> blocks_mapped_{0};
  // One Attach at a time: two of one lease could not be told apart on the lifeline.
  Mutex attach_mu_;
  CondVar attach_turn_;
  bool attaching_ ABSL_GUARDED_BY(attach_mu_) = false;
  Mutex watch_mu_;
  CondVar watch_changed_;
  std::optional<absl::Status> watching_ ABSL_GUARDED_BY(watch_mu_);  // OK: the event stream is in place
  Mutex callback_mu_;
  std::shared_ptr<const EventCallback> callback_ ABSL_GUARDED_BY(callback_mu_);
  SessionTransfers transfers_;
  std::unique_ptr<EventStream> events_;
};

}  // namespace ub

#endif  // UB_SRC_SESSION_H_
