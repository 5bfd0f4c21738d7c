// The descriptors that one client has offered and no RPC has taken yet, and the RPCs that wait for one that is still on
// its way. The client is hostile: it may offer without end (the newest ub::wire::kMaxOffers stay, older ones are
// closed), name what it never sent (each wait has a timer), or wait a thousand times (kMostWaiting).
//
// Thread-safe. Calls back with no lock held. No timer exists while nobody waits.
#ifndef UBD_SESSION_OFFER_BOX_H_
#define UBD_SESSION_OFFER_BOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/session/event_loop.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

class OfferBox : public std::enable_shared_from_this<OfferBox> {
 public:
  static constexpr size_t kMostWaiting = ub::wire::kMaxOffers;
  using Taker = std::function<void(absl::StatusOr<ub::UniqueFd>)>;
  // What came with an Offer frame: the descriptor, or why there is none. Made anew at each call.
  struct Offered {
    ub::UniqueFd fd;
    std::function<absl::Status()> fault;  // set: no descriptor
  };

  // `loop` must outlive the box's last waiting taker.
  explicit OfferBox(std::weak_ptr<EventLoop> loop) : loop_(std::move(loop)) {}

  // False: the number is 0 or lies here already, which no honest client's does.
  bool Put(uint64_t number, Offered offered);
  // Session::TakeOffer. Of two that wait for one number the older ends as ABORTED/SUPERSEDED: a retry took over.
  void Take(uint64_t number, absl::Duration patience, const Taker& taker);
  // Closes all; whoever waits, and whoever comes, gets SESSION_ENDED.
  void Close();

 private:
  struct Waiting {
    Taker taker;
    EventLoop::TimerId timer = 0;
    uint64_t ticket = 0;
  };
  void OnTimeout(uint64_t number, uint64_t ticket);
  void Cancel(EventLoop::TimerId timer);
  bool TakeKept(uint64_t number, Offered* offered) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Answer(const Taker& taker, Offered offered);

  const std::weak_ptr<EventLoop> loop_;
  ub::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t tickets_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<std::pair<uint64_t, Offered>> kept_ ABSL_GUARDED_BY(mu_);  // oldest first
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_SESSION_OFFER_BOX_H_
