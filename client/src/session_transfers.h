// The part of a session that queues and files belong to: opens and closes them at the daemon, tells queues of the
// session's end, and reads queues on whose Queue was destroyed too early. Thread-safe.
#ifndef UB_SRC_SESSION_TRANSFERS_H_
#define UB_SRC_SESSION_TRANSFERS_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "client/src/broker_rpc.h"
#include "client/src/grant_inbox.h"
#include "client/src/later_calls.h"
#include "client/src/transfer_host.h"
#include "proto/wire/mutex.h"

namespace ub {

class SessionTransfers final : public TransferHost {
 public:
  // All of these must outlive it.
  SessionTransfers(int lifeline, BrokerRpc& rpc, GrantInbox& inbox, const LeaseHost* leases)
      : lifeline_(lifeline), rpc_(rpc), inbox_(inbox), leases_(leases) {}
  ~SessionTransfers() override;

  // Sends a descriptor down the lifeline and returns the number by which an RPC names it.
  absl::StatusOr<uint64_t> Offer(int fd, Deadline deadline);
  // The session has ended: so have all queues.
  void EndAll();
  // This side ends the session: also waits for what still runs here, as far as the daemon answers.
  void Stop();
  LaterCalls& later() { return later_; }

  // TransferHost
  absl::StatusOr<QueueParts> OpenQueue(const QueueOptions& options, Deadline deadline) override;
  void CloseQueue(std::unique_ptr<QueueImpl> queue) override;
  absl::StatusOr<FileFacts> OpenFile(int fd, Deadline deadline) override;
  void CloseFile(uint32_t handle) override;
  void AddRing(QueueRingClient* ring) override;
  void RemoveRing(QueueRingClient* ring) override;
  const LeaseHost* lease_host() const override { return leases_; }

 private:
  // A thread that reads a queue until nothing is in flight.
  struct Drainer {
    std::atomic<bool> finished{false};
    std::thread thread;
  };
  void TellClosed(uint32_t queue);
  absl::Status AwaitEarlierCalls(Deadline deadline);
  void JoinFinished(std::list<Drainer>& finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int lifeline_;
  BrokerRpc& rpc_;
  GrantInbox& inbox_;
  const LeaseHost* const leases_;
  std::atomic<uint64_t> next_offer_{1};
  std::atomic<bool> ended_{false};
  Mutex mu_;
  std::vector<QueueRingClient*> rings_ ABSL_GUARDED_BY(mu_);
  std::list<Drainer> drainers_ ABSL_GUARDED_BY(mu_);
  LaterCalls later_;
};

}  // namespace ub

#endif  // UB_SRC_SESSION_TRANSFERS_H_
