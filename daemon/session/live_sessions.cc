#include "daemon/session/live_sessions.h"

#include <utility>

namespace ubd {
namespace {

std::optional<uint8_t> Digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::optional<SessionToken> ParseToken(std::string_view hex) {
  SessionToken token;
  if (hex.size() != 2 * token.size()) return std::nullopt;
  for (size_t i = 0; i < token.size(); ++i) {
    auto high = Digit(hex[2 * i]), low = Digit(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    token[i] = static_cast<uint8_t>(*high << 4 | *low);
  }
  return token;
}

bool LiveSessions::SameToken::operator()(const SessionToken& a, const SessionToken& b) const {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::shared_ptr<Session> LiveSessions::Find(std::string_view token_hex, Uid uid) const {
  std::optional<SessionToken> token = ParseToken(token_hex);
  if (!token) return nullptr;
  ub::MutexLock lock(&mu_);
  auto it = by_token_.find(*token);
  return it != by_token_.end() && it->second->facts().uid == uid ? it->second : nullptr;
}

std::shared_ptr<LifelineSession> LiveSessions::FindLive(SessionId id) const {
  ub::MutexLock lock(&mu_);
  auto it = by_id_.find(id);
  return it != by_id_.end() ? it->second : nullptr;
}

void LiveSessions::Insert(std::shared_ptr<LifelineSession> session) {
  ub::MutexLock lock(&mu_);
  ++of_uid_[session->facts().uid];
  ++total_;
  by_token_[session->token()] = session;
  by_id_[session->facts().id] = std::move(session);
}

std::shared_ptr<LifelineSession> LiveSessions::Remove(SessionId id) {
  ub::MutexLock lock(&mu_);
  auto it = by_id_.find(id);
  if (it == by_id_.end()) return nullptr;
  std::shared_ptr<LifelineSession> session = std::move(it->second);
  by_id_.erase(it);
  by_token_.erase(session->token());
  return session;
}

void LiveSessions::Forget(Uid uid) {
  ub::MutexLock lock(&mu_);
  auto it = of_uid_.find(uid);
  if (--it->second == 0) of_uid_.erase(it);
  --total_;
}

std::vector<SessionId> LiveSessions::Ids() const {
  ub::MutexLock lock(&mu_);
  std::vector<SessionId> ids;
  for (const auto& [id, session] : by_id_) ids.push_back(id);
  return ids;
}

uint64_t LiveSessions::total() const {
  ub::MutexLock lock(&mu_);
  return total_;
}

uint64_t LiveSessions::OfUid(Uid uid) const {
  ub::MutexLock lock(&mu_);
  auto it = of_uid_.find(uid);
  return it == of_uid_.end() ? 0 : it->second;
}

}  // namespace ubd
