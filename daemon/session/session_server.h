// The session server behind SessionServer: what the pieces do together. All on the loop's thread unless said otherwise.
//
//   lifeline.sock -> Acceptor -> Handshakes -> StartSession -> LiveSessions ... hang-up, pidfd or misuse -> EndSession
//   -> (lingering) -> gone ubd.sock      -> Acceptor -> RpcConnections -> gRPC
#ifndef UBD_SESSION_SESSION_SERVER_H_
#define UBD_SESSION_SESSION_SERVER_H_

#include <atomic>
#include <deque>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "daemon/session/acceptor.h"
#include "daemon/session/courier.h"
#include "daemon/session/handshakes.h"
#include "daemon/session/live_sessions.h"
#include "daemon/session/rpc_connections.h"
#include "daemon/session/server.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"

namespace ubd {

class LoopSessionServer : public SessionServer {
 public:
  LoopSessionServer(SessionServerDeps deps, Broker& broker, LeasePages& pages, std::unique_ptr<EventLoop> loop,
                    uint64_t boot_id);
  ~LoopSessionServer() override;
  absl::Status Start();

  SessionRegistry& registry() override { return *table_; }
  ConnectionTable& connections() override { return connections_; }
  void Run() override;
  void Stop(absl::Duration grace) override;
  void WatchFd(int fd, std::function<void()> on_ready) override;
  void RunAfter(absl::Duration delay, std::function<void()> what) override;
  void SetLimits(const SessionLimits& limits) override;

 private:
  SessionLimits limits() const;
  void OnHello(ub::UniqueFd lifeline, PeerIdentity identity, const ub::wire::Hello& hello);
  absl::Status Admit(Uid uid) const;
  absl::Status WatchPeer(const std::shared_ptr<LifelineSession>& session);
  void OnPeer(SessionId id, uint32_t events);
  // session_offers.cc
  void ReadOffers(const std::shared_ptr<LifelineSession>& session);
  void ReadLater(const std::shared_ptr<LifelineSession>& session);
  bool TakePacket(LifelineSession& session, Doorman::Arrival arrival);
  absl::Status WatchDoorman();
  void AskDoorman(const std::shared_ptr<LifelineSession>& session);
  void OnDoorman();
  void AskLater();
  void DoormanGone();
  void EndSession(SessionId id, SessionEnd how);
  void OnTaken(SessionId id);
  void OnStop();
  void QuitIfEmpty();

  // The Broker's deadlines. Poke comes from any thread.
  void Poke();
  void Tick();
  void ScheduleTick();

  Broker& broker_;
  LeasePages& pages_;
  const SessionHooks hooks_;
  std::unique_ptr<Doorman> doorman_;
  EventLoop::WatchId doorman_watch_ = 0;
  bool doorman_lost_ = false;
  bool asking_later_ = false;
  std::deque<SessionId> to_ask_;  // sessions that sent something, while the doorman is busy
  const uint64_t boot_id_;
  const std::shared_ptr<LiveSessions> table_;
  const std::shared_ptr<CourierContext> context_;
  EventLoop& loop_;
  Handshakes handshakes_;
  RpcConnections connections_;
  Acceptor lifeline_acceptor_;
  Acceptor rpc_acceptor_;
  uint64_t next_session_ = 1;
  // Ended, but fds still lie in their lifelines.
  absl::flat_hash_map<SessionId, std::shared_ptr<LifelineSession>> lingering_;

  EventLoop::TimerId tick_ = 0;
  std::atomic<int64_t> armed_ns_;

  bool stopping_ = false;
  std::atomic<int64_t> stop_grace_ns_{-1};

  mutable ub::Mutex mu_;
  SessionLimits limits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_SESSION_SESSION_SERVER_H_
