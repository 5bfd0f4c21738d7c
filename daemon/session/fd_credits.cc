#include "daemon/session/fd_credits.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace ubd {
namespace {

// A packet costs at least this much of the send buffer. Less than that is only the kernel's own reference while it
// frees the last packet.
constexpr int kLeastPacketCost = 128;

bool NothingInFlight(int lifeline) {
  int waiting = 0;
  return ::ioctl(lifeline, SIOCOUTQ, &waiting) == 0 && waiting < kLeastPacketCost;
}

}  // namespace

void FdCredits::Open(SessionId session, Uid uid, int lifeline) {
  ub::MutexLock lock(&mu_);
  accounts_[session] = Account{uid, lifeline, 0, 0};
  uids_[uid].sessions.insert(session);
}

void FdCredits::Close(SessionId session) {
  ub::MutexLock lock(&mu_);
  auto it = accounts_.find(session);
  if (it == accounts_.end()) return;
  auto uid = uids_.find(it->second.uid);
  uid->second.total -= it->second.reserved + it->second.sent;
  uid->second.waiting.erase(session);
  uid->second.sessions.erase(session);
  if (uid->second.sessions.empty()) uids_.erase(uid);
  accounts_.erase(it);
}

uint64_t FdCredits::ShareLocked() const {
  // At least one frame, so that a small limit slows everybody down but stops nobody.
  return std::max<uint64_t>(budget_() / std::max<size_t>(uids_.size(), 1), kPerSession);
}

FdCredits::UidAccount* FdCredits::UidOf(SessionId session) {
  auto it = accounts_.find(session);
  return it == accounts_.end() ? nullptr : &uids_.find(it->second.uid)->second;
}

bool FdCredits::RefreshLocked(Account& account) {
  if (account.sent == 0 || !NothingInFlight(account.lifeline)) return false;
  uids_.find(account.uid)->second.total -= account.sent;
  account.sent = 0;
  return true;
}

FdCredits::Wait FdCredits::Take(SessionId session, size_t wanted) {
  ub::MutexLock lock(&mu_);
  auto it = accounts_.find(session);
  if (it == accounts_.end()) return Wait::kOwn;
  Account& account = it->second;
  UidAccount& uid = uids_.find(account.uid)->second;
  const uint64_t share = ShareLocked();
  auto room = [](uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; };
  RefreshLocked(account);
  if (wanted > room(kPerSession, account.reserved + account.sent)) return Wait::kOwn;
  if (wanted > room(share, uid.total)) {
    for (SessionId other : uid.sessions) RefreshLocked(accounts_.find(other)->second);
  }
  if (wanted > room(share, uid.total)) {
    uid.waiting.insert(session);
    return Wait::kUid;
  }
  account.reserved += wanted;
  uid.total += wanted;
  return Wait::kNone;
}

void FdCredits::Sent(SessionId session, size_t count) {
  ub::MutexLock lock(&mu_);
  auto it = accounts_.find(session);
  if (it == accounts_.end()) return;
  it->second.reserved -= count;
  it->second.sent += count;
}

void FdCredits::Unsent(SessionId session, size_t count) {
  ub::MutexLock lock(&mu_);
  auto it = accounts_.find(session);
  if (it == accounts_.end()) return;
  it->second.reserved -= count;
  uids_.find(it->second.uid)->second.total -= count;
}

bool FdCredits::Refresh(SessionId session) {
  ub::MutexLock lock(&mu_);
  auto it = accounts_.find(session);
  return it != accounts_.end() && RefreshLocked(it->second);
}

uint64_t FdCredits::InFlight(SessionId session) {
  ub::MutexLock lock(&mu_);
  auto it = accounts_.find(session);
  if (it == accounts_.end()) return 0;
  RefreshLocked(it->second);
  return it->second.reserved + it->second.sent;
}

std::vector<SessionId> FdCredits::Debtors(SessionId of_same_uid) {
  ub::MutexLock lock(&mu_);
  std::vector<SessionId> debtors;
  UidAccount* uid = UidOf(of_same_uid);
  if (uid == nullptr) return debtors;
  for (SessionId session : uid->sessions) {
    if (accounts_.find(session)->second.sent > 0) debtors.push_back(session);
  }
  return debtors;
}

std::vector<SessionId> FdCredits::Waiters(SessionId of_same_uid) {
  ub::MutexLock lock(&mu_);
  UidAccount* uid = UidOf(of_same_uid);
  if (uid == nullptr) return {};
  std::vector<SessionId> waiters(uid->waiting.begin(), uid->waiting.end());
  uid->waiting.clear();
  return waiters;
}

bool FdCredits::HasWaiters(SessionId of_same_uid) {
  ub::MutexLock lock(&mu_);
  UidAccount* uid = UidOf(of_same_uid);
  return uid != nullptr && !uid->waiting.empty();
}

}  // namespace ubd
