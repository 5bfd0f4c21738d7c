#include "daemon/session/offer_box.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

absl::Status SessionEnded() {
  return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kSessionEnded, "the session has ended");
}

absl::Status NoSuchOffer() {
  return ub::MakeError(absl::StatusCode::kNotFound, ub::Reason::kNoSuchOffer,
                       "no Offer frame of this number came, or it was used, or 64 newer ones pushed it out: send the "
                       "descriptor in an Offer frame on the lifeline, then name it in one call");
}

absl::Status TooManyWaiting() {
  return ub::MakeError(
      absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyWaiters,
      absl::StrCat("this session has ", OfferBox::kMostWaiting, " calls that wait for an Offer frame: send the frames"),
      {{"limit", absl::StrCat(OfferBox::kMostWaiting)}});
}

}  // namespace

void OfferBox::Answer(const Taker& taker, Offered offered) {
  if (offered.fault) return taker(offered.fault());
  taker(std::move(offered.fd));
}

void OfferBox::Cancel(EventLoop::TimerId timer) {
  if (auto loop = loop_.lock()) loop->Cancel(timer);
}

bool OfferBox::TakeKept(uint64_t number, Offered* offered) {
  auto it = std::find_if(kept_.begin(), kept_.end(), [number](const auto& entry) { return entry.first == number; });
  if (it == kept_.end()) return false;
  *offered = std::move(it->second);
  kept_.erase(it);
  return true;
}

bool OfferBox::Put(uint64_t number, Offered offered) {
  if (number == 0) return false;
  Waiting waiting;
  Offered oldest;  // closed after the lock is free
  {
    ub::MutexLock lock(&mu_);
    if (closed_) return true;
    auto it = waiting_.find(number);
    if (it == waiting_.end()) {
      if (std::any_of(kept_.begin(), kept_.end(), [number](const auto& entry) { return entry.first == number; }))
        return false;
      kept_.emplace_back(number, std::move(offered));
      if (kept_.size() <= ub::wire::kMaxOffers) return true;
      oldest = std::move(kept_.front().second);
      kept_.pop_front();
      return true;
    }
    waiting = std::move(it->second);
    waiting_.erase(it);
  }
  Cancel(waiting.timer);
  Answer(waiting.taker, std::move(offered));
  return true;
}

void OfferBox::Take(uint64_t number, absl::Duration patience, const Taker& taker) {
  Offered offered;
  bool here = false, closed = false, full = false;
  Waiting older;
  auto loop = loop_.lock();
  {
    ub::MutexLock lock(&mu_);
    closed = closed_ || loop == nullptr;
    here = !closed && TakeKept(number, &offered);
    auto it = waiting_.find(number);
    full = it == waiting_.end() && waiting_.size() >= kMostWaiting;
    if (!closed && !here && !full) {
      Waiting& mine = waiting_[number];
      older = std::move(mine);
      const uint64_t ticket = ++tickets_;
      std::weak_ptr<OfferBox> weak = weak_from_this();
      const EventLoop::TimerId timer = loop->RunAfter(patience, [weak, number, ticket] {
        if (auto self = weak.lock()) self->OnTimeout(number, ticket);
      });
      mine = Waiting{taker, timer, ticket};
    }
  }
  if (older.taker) {
    Cancel(older.timer);
    older.taker(ub::MakeError(absl::StatusCode::kAborted, ub::Reason::kSuperseded, "a retry took over"));
  }
  if (closed) return taker(SessionEnded());
  if (here) return Answer(taker, std::move(offered));
  if (full) taker(TooManyWaiting());
}

void OfferBox::OnTimeout(uint64_t number, uint64_t ticket) {
  Waiting waiting;
  {
    ub::MutexLock lock(&mu_);
    auto it = waiting_.find(number);
    if (it == waiting_.end() || it->second.ticket != ticket) return;
    waiting = std::move(it->second);
    waiting_.erase(it);
  }
  waiting.taker(NoSuchOffer());
}

void OfferBox::Close() {
  std::deque<std::pair<uint64_t, Offered>> kept;
  std::map<uint64_t, Waiting> waiting;
  {
    ub::MutexLock lock(&mu_);
    closed_ = true;
    kept.swap(kept_);
    waiting.swap(waiting_);
  }
  for (auto& [number, one] : waiting) {
    Cancel(one.timer);
    one.taker(SessionEnded());
  }
}

}  // namespace ubd
