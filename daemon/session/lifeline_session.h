// A live session: what the kernel attests of its process, its secret token, and the courier on its lifeline.
// Thread-safe; kept by the session table and, for moments, by RPCs.
#ifndef UBD_SESSION_LIFELINE_SESSION_H_
#define UBD_SESSION_LIFELINE_SESSION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/session/courier.h"
#include "daemon/session/offer_box.h"
#include "daemon/session/session.h"
#include "proto/wire/unique_fd.h"

namespace ubd {

using SessionToken = std::array<uint8_t, 16>;

class LifelineSession : public Session {
 public:
  LifelineSession(SessionFacts facts, const SessionToken& token, ub::UniqueFd pidfd, std::shared_ptr<Courier> courier,
                  std::shared_ptr<OfferBox> offers)
      : facts_(std::move(facts)),
        token_(token),
        pidfd_(std::move(pidfd)),
        courier_(std::move(courier)),
        offers_(std::move(offers)) {}

  const SessionFacts& facts() const override { return facts_; }
  void Deliver(const Grant& grant, LeasePin pin, std::function<void(absl::Status)> first) override {
    courier_->Deliver(grant, std::move(pin), std::move(first));
  }
  absl::Status DeliverQueue(const ub::wire::QueueGrant& grant, ub::UniqueFd memory, ub::UniqueFd event) override {
    return courier_->DeliverQueue(grant, std::move(memory), std::move(event));
  }
  void TakeOffer(uint64_t offer, absl::Duration patience,
                 std::function<void(absl::StatusOr<ub::UniqueFd>)> take) override {
    offers_->Take(offer, patience, take);
  }
  uint64_t fds_in_flight() const override { return courier_->fds_in_flight(); }

  const SessionToken& token() const { return token_; }
  const std::shared_ptr<Courier>& courier() const { return courier_; }
  OfferBox& offers() { return *offers_; }

  // Loop thread. Invalid: the process cannot be watched, its lifeline alone tells.
  int pidfd() const { return pidfd_.get(); }
  EventLoop::WatchId pidfd_watch = 0;
  bool reading_posted = false;  // a turn of reading is due on the loop
  bool asked = false;           // the doorman is to receive its next packet

 private:
  const SessionFacts facts_;
  const SessionToken token_;
  const ub::UniqueFd pidfd_;
  const std::shared_ptr<Courier> courier_;
  const std::shared_ptr<OfferBox> offers_;
};

}  // namespace ubd

#endif  // UBD_SESSION_LIFELINE_SESSION_H_
