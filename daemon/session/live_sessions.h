// All live sessions, by id and by token, and how many each uid has. Thread-safe.
#ifndef UBD_SESSION_LIVE_SESSIONS_H_
#define UBD_SESSION_LIVE_SESSIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/session/lifeline_session.h"
#include "daemon/session/session.h"
#include "proto/wire/mutex.h"

namespace ubd {

// 32 hex digits, either case.
std::optional<SessionToken> ParseToken(std::string_view hex);

class LiveSessions : public SessionRegistry {
 public:
  explicit LiveSessions(std::function<uint64_t()> take_backs) : take_backs_(std::move(take_backs)) {}

  std::shared_ptr<Session> Find(std::string_view token_hex, Uid uid) const override;
  std::shared_ptr<Session> Find(SessionId id) const override { return FindLive(id); }
  uint64_t TakeBacks() const override { return take_backs_(); }
  std::shared_ptr<LifelineSession> FindLive(SessionId id) const;

  void Insert(std::shared_ptr<LifelineSession> session);
  // The session cannot be found any more; its uid's count stays until Forget, as its lifeline may linger. Null: it was
  // not there.
  std::shared_ptr<LifelineSession> Remove(SessionId id);
  void Forget(Uid uid);
  std::vector<SessionId> Ids() const;
  // With those that linger.
  uint64_t total() const;
  uint64_t OfUid(Uid uid) const;

 private:
  // Takes as long for a token that shares its first bytes with a secret one as for any other. (The hash is seeded anew
  // in each process.)
  struct SameToken {
    bool operator()(const SessionToken& a, const SessionToken& b) const;
  };

  const std::function<uint64_t()> take_backs_;
  mutable ub::Mutex mu_;
  absl::flat_hash_map<SessionId, std::shared_ptr<LifelineSession>> by_id_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<SessionToken, std::shared_ptr<LifelineSession>, absl::Hash<SessionToken>, SameToken> by_token_
      ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Uid, uint64_t> of_uid_ ABSL_GUARDED_BY(mu_);
  uint64_t total_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace ubd

#endif  // UBD_SESSION_LIVE_SESSIONS_H_
