// Carries the fds of grants down one lifeline, in order, without ever blocking and without a thread of its own. The
// first batch of a grant goes out on the caller's thread, as an Acquire waits for it; the rest on the event loop, one
// batch a turn.
//
//            Deliver             batch sent, more left
//   idle  ------------> sending <-----------------------> posted on the loop
//     ^                  |  |
//     +------------------+  +--> throttled: no credit, or the kernel has no room. Ends when the client reads (EPOLLOUT,
//     edge), when another
//          queue empty           session of the uid reads, or by a back-off timer where the kernel has no event for it
//
// While a delivery waits its lease is not pinned, so that a lease that ended meanwhile (its RPC gave up, revoke,
// release) does not keep its blocks from their next tenant because its client does not read; before the next batch it
// is pinned anew, and a delivery whose lease has ended is dropped.
//
// Thread-safe. Calls the Broker and all callbacks with no lock held.
#ifndef UBD_SESSION_COURIER_H_
#define UBD_SESSION_COURIER_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/core/broker.h"
#include "daemon/session/event_loop.h"
#include "daemon/session/fd_credits.h"
#include "daemon/session/session.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class Courier;

// What the couriers of all sessions share. Kept by shared_ptr, as an RPC's thread may hold a session a little longer
// than the server lives.
struct CourierContext {
  CourierContext(std::unique_ptr<EventLoop> l, Broker& b, FdCredits::Budget budget, HolderFdOpener open)
      : loop(std::move(l)), broker(b), credits(std::move(budget)), open_fd(std::move(open)) {}

  const std::unique_ptr<EventLoop> loop;
  Broker& broker;
  FdCredits credits;
  const HolderFdOpener open_fd;
  // The courier of a live session; null: gone. Any thread.
  std::function<std::shared_ptr<Courier>(SessionId)> find;
};

class Courier : public std::enable_shared_from_this<Courier> {
 public:
  Courier(SessionId session, Uid uid, ub::UniqueFd lifeline, std::shared_ptr<CourierContext> context);
  ~Courier();

  // Session::Deliver.
  void Deliver(const Grant& grant, LeasePin pin, std::function<void(absl::Status)> first);
  absl::Status SendWelcome(absl::Span<const std::byte> frame, int page_fd);
  // Session::DeliverQueue.
  absl::Status DeliverQueue(const ub::wire::QueueGrant& grant, ub::UniqueFd memory, ub::UniqueFd event);
  uint64_t fds_in_flight() { return context_->credits.InFlight(session_); }
  // Learns of the client's next read.
  void WatchReading();
  // Room may have come: try again.
  void Resume() { Pump(); }

  // --- loop thread
  // Watches the lifeline; `on_peer` gets the events that are not the courier's own.
  absl::Status Start(std::function<void(uint32_t)> on_peer);
  // No fd is sent from now on; what is queued fails with SESSION_ENDED. True: fds lie in the lifeline untaken and count
  // against the daemon's limit, so it is shut down but kept, and `on_taken` is called when they are gone; call Finish
  // then. False: it is closed.
  bool Close(std::function<void()> on_taken);
  // Closes the lifeline, whatever lies in it.
  void Finish();
  // The next packet that the client sent. Closed: as a hang-up, an empty packet.
  absl::StatusOr<ub::wire::Packet> Receive(bool with_fds);
  // Whether `on_peer` hears of what the client sends; of its hang-up in any case.
  void ListenTo(bool sent);
  // Runs `use` with the lifeline's descriptor, which stays open meanwhile; -1: it is closed.
  bool Lend(const std::function<bool(int)>& use);

 private:
  struct Delivery;
  using DeliveryPtr = std::shared_ptr<Delivery>;
  // What became of one batch.
  enum class Outcome { kSent, kDone, kOwnWait, kUidWait, kBackOff };

  // courier.cc: the queue
  void Pump();
  void AfterBatch(const DeliveryPtr& delivery, Outcome outcome);
  void PumpLater(const std::shared_ptr<Courier>& courier);
  void Throttle(Outcome why);
  void BackOff();
  void OnEvents(uint32_t events);
  void OnWritable();
  void CheckTaken();
  void PostCheckTaken();
  DeliveryPtr TakeSuperseded(LeaseId lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(const DeliveryPtr& delivery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool UnderWay(const DeliveryPtr& delivery) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropEnded();

  // courier_send.cc: one batch. Only the thread that set pumping_ touches the delivery.
  Outcome SendBatch(Delivery& delivery);
  Outcome SendFds(Delivery& delivery, const std::vector<ub::UniqueFd>& fds);
  // The fds of the next blocks, at most `count`, fewer if this process has no room for more.
  absl::StatusOr<std::vector<ub::UniqueFd>> OpenFds(const Delivery& delivery, size_t count);
  // The grant cannot be delivered: ends the lease. / The lease has ended already.
  Outcome Fail(Delivery& delivery, const absl::Status& why);
  Outcome Drop(Delivery& delivery, const absl::Status& why);
  void SendGrantFailed(const Delivery& delivery, const absl::Status& why);
  static absl::Status LeaseEnded();

  const SessionId session_;
  const std::shared_ptr<CourierContext> context_;
  std::function<void(uint32_t)> on_peer_;  // loop thread
  std::function<void()> on_taken_;         // loop thread

  mutable ub::Mutex mu_;
  ub::UniqueFd lifeline_ ABSL_GUARDED_BY(mu_);
  EventLoop::WatchId watch_ ABSL_GUARDED_BY(mu_) = 0;
  EventLoop::TimerId retry_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration back_off_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool pumping_ ABSL_GUARDED_BY(mu_) = false;
  bool again_ ABSL_GUARDED_BY(mu_) = false;  // somebody wanted to pump meanwhile
  bool throttled_ ABSL_GUARDED_BY(mu_) = false;
  bool watches_reading_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t peer_events_ ABSL_GUARDED_BY(mu_);
  uint64_t deliveries_ ABSL_GUARDED_BY(mu_) = 0;
  size_t look_for_ended_at_ ABSL_GUARDED_BY(mu_);
  std::deque<DeliveryPtr> queue_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<LeaseId, DeliveryPtr> newest_ ABSL_GUARDED_BY(mu_);  // of the queue, by lease
};

struct Courier::Delivery {
  Delivery(const Grant& g, LeasePin p, std::function<void(absl::Status)> f)
      : grant(g), pin(std::move(p)), first(std::move(f)) {}
  // Calls `first` if it was not called yet.
  void Answer(const absl::Status& status) {
    if (auto call = std::exchange(first, nullptr)) call(status);
  }

  const Grant grant;
  LeasePin pin;
  bool pinned = true;
  std::function<void(absl::Status)> first;
  size_t sent = 0;      // blocks; changes under the courier's lock
  uint64_t number = 0;  // ub::wire::Grant::delivery
};

}  // namespace ubd

#endif  // UBD_SESSION_COURIER_H_
