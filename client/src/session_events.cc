// Session: what the daemon tells without being asked. Everything here runs on the event thread.
#include <sys/socket.h>

#include <utility>

#include "client/src/daemon_errors.h"
#include "client/src/session.h"

namespace ub {
namespace {

// Short, because the Client's destructor may have to wait for it.
constexpr absl::Duration kRecheckDeadline = absl::Seconds(1);

}  // namespace

void Session::OnEvent(EventCallback callback) {
  MutexLock lock(&callback_mu_);
  callback_ = callback ? std::make_shared<const EventCallback>(std::move(callback)) : nullptr;
}

void Session::Tell(const Event& event) {
  std::shared_ptr<const EventCallback> callback;
  {
    MutexLock lock(&callback_mu_);
    callback = callback_;
  }
  if (callback != nullptr) (*callback)(event);
}

absl::Status Session::AwaitWatching(Deadline deadline) {
  MutexLock lock(&watch_mu_);
  while (!watching_) {
    if (deadline.passed()) return NotAnswering();
    watch_changed_.WaitWithTimeout(&watch_mu_, deadline.left());
  }
  return *watching_;
}

void Session::SetWatching(const absl::Status& status) {
  MutexLock lock(&watch_mu_);
  if (!watching_) watching_ = status;
  watch_changed_.SignalAll();
}

void Session::OnDaemonEvent(const v1::Event& event) {
  if (event.missed() > 0) Recheck();
  LeaseId lease(event.lease());
  switch (event.kind()) {
    case v1::Event::WATCHING:
      SetWatching(absl::OkStatus());
      break;
    case v1::Event::RECALLED:
      EndLease(lease, LeaseEnd::kRecalled, Event::Kind::kRecalled, event.text());
      break;
    case v1::Event::REVOKED:
      EndLease(lease, LeaseEnd::kRevoked, Event::Kind::kRevoked, event.text());
      break;
    case v1::Event::EXPIRED:
      EndLease(lease, LeaseEnd::kExpired, Event::Kind::kExpired, event.text());
      break;
    case v1::Event::OWNER_RELEASED:
      EndLease(lease, LeaseEnd::kOwnerReleased, Event::Kind::kOwnerReleased, event.text());
      break;
    case v1::Event::STOPPING:
      Tell({.kind = Event::Kind::kStopping, .lease = LeaseId(), .text = event.text()});
      break;
    default:
      break;
  }
  inbox_.DrainIfIdle();
}

void Session::EndLease(LeaseId lease, LeaseEnd end, Event::Kind kind, const std::string& text) {
  bool news = registry_.End(lease, end);
  // Unmapped here and now: the daemon reuses the memory only when nobody maps it any more.
  std::unique_ptr<LeaseImpl> cached = cache_.Remove(lease);
  if (cached != nullptr) recalled_.fetch_add(1, std::memory_order_relaxed);
  cached.reset();
  if (news) Tell({.kind = kind, .lease = lease, .text = text});
}

void Session::Recheck() {
  LeaseList dead;
  cache_.RemoveRecalled(&dead);
  CountRecalled(dead);
  dead.clear();
  // First ours, then the daemon's: what it does not list then has ended.
  std::vector<LeaseId> ours = registry_.Ids();
  if (ours.empty()) return;
  absl::StatusOr<std::set<LeaseId>> known = rpc_.ListLeases(Deadline::After(kRecheckDeadline));
  if (!known.ok()) return;  // words and the daemon's refusals still tell
  for (LeaseId lease : ours) {
    if (!known->contains(lease))
      EndLease(lease, LeaseEnd::kRevoked, Event::Kind::kRevoked, "ended while events were missed");
  }
}

void Session::OnStreamEnd(const absl::Status& why) {
  disconnected_.store(true);
  SetWatching(why.ok() ? SessionEnded() : why);
  // Should only the stream have ended: the daemon must not go on with a session that this side has given up.
  ::shutdown(lifeline_->fd(), SHUT_RDWR);
  registry_.EndAll(LeaseEnd::kDisconnected);
  transfers_.EndAll();
  LeaseList all;
  cache_.TakeAll(&all, &all);
  all.clear();
  Tell({.kind = Event::Kind::kDisconnected, .lease = LeaseId(), .text = std::string(why.message())});
}

}  // namespace ub
