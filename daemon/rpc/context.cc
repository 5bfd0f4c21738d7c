#include "daemon/rpc/context.h"

#include <unistd.h>

#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr char kTokenKey[] = "ub-token";
constexpr size_t kTokenDigits = 32;
// Each open call costs some 10 KiB. Honest clients stay under the limit on streams of a connection (256).
constexpr uint32_t kCallsPerConnection = 512;
// Some for each of a user's sessions, and all its waiters.
constexpr uint32_t kCallsPerUid = 8192;

absl::Status NoSession() {
  return ub::MakeError(
      absl::StatusCode::kUnauthenticated, ub::Reason::kNoSession,
      "no live session with this token for this user: connect to lifeline.sock first and send its token "
      "as metadata \"ub-token\"; if the daemon was restarted, connect anew");
}

}  // namespace

CallLimiter::Place CallLimiter::Take(const std::string& key, uint32_t limit) {
  ub::MutexLock lock(&mu_);
  uint32_t& taken = taken_[key];
  if (taken >= limit) return nullptr;
  ++taken;
  // The pointer is only a handle that is not null; the deleter gives the place back.
  return Place(this, [key](CallLimiter* self) {
    ub::MutexLock inner(&self->mu_);
    auto it = self->taken_.find(key);
    if (--it->second == 0) self->taken_.erase(it);
  });
}

absl::Status TooManyCalls(uint32_t limit) {
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kTooManyWaiters,
                       absl::StrCat("this caller has ", limit, " calls of this kind open already: end one of them"),
                       {{"limit", absl::StrCat(limit)}});
}

bool ReadOnlyIsAdvisory(Uid uid) { return uid.value() == 0 || uid.value() == geteuid(); }

absl::StatusOr<Admission> RpcContext::Admit(const grpc::ServerContext& call) {
  ConnectionTable* table = connections.load(std::memory_order_acquire);
  const std::string name = call.peer();
  std::optional<RpcPeer> peer;
  if (table != nullptr) peer = table->Lookup(name);
  if (!peer) {
    return ub::MakeError(absl::StatusCode::kUnauthenticated, ub::Reason::kNoSession,
                         "this connection was not accepted on ubd.sock, so its user is unknown: connect anew");
  }
  Admission admission{*peer, limits.Take(name, kCallsPerConnection), nullptr};
  if (admission.of_connection != nullptr) {
    admission.of_uid = limits.Take(absl::StrCat("calls uid ", peer->uid.value()), kCallsPerUid);
  }
  if (admission.of_uid != nullptr) return admission;
  table->Drop(name);
  return TooManyCalls(admission.of_connection == nullptr ? kCallsPerConnection : kCallsPerUid);
}

absl::StatusOr<std::shared_ptr<Session>> RpcContext::FindSession(const grpc::ServerContext& call,
                                                                 const RpcPeer& peer) const {
  SessionRegistry* registry = sessions.load(std::memory_order_acquire);
  const auto& metadata = call.client_metadata();
  auto [first, last] = metadata.equal_range(kTokenKey);
  // Two tokens are as good as none: which one counts must not depend on their order.
  if (registry == nullptr || first == last || std::next(first) != last) return NoSession();
  std::string_view token(first->second.data(), first->second.size());
  if (token.size() != kTokenDigits) return NoSession();
  std::shared_ptr<Session> session = registry->Find(token, peer.uid);
  if (session == nullptr) return NoSession();
  return session;
}

Viewer RpcContext::ViewerOf(const RpcPeer& peer) const {
  return Viewer{deps.is_admin(peer.uid, peer.gid, peer.pid), peer.uid};
}

}  // namespace ubd
