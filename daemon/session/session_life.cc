// From Hello to the last fd taken: how a session begins and how it ends.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/session/peer_identity.h"
#include "daemon/session/proc_stat.h"
#include "daemon/session/refusal.h"
#include "daemon/session/session_server.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/frame.h"
#include "proto/wire/lease_word.h"

namespace ubd {
namespace {

absl::Status TooManySessions(const char* whose, uint32_t limit) {
  return ub::MakeError(
      absl::StatusCode::kResourceExhausted, ub::Reason::kTooManySessions,
      absl::StrCat("ubd serves at most ", limit, " sessions ", whose, "; close some or raise the limit in the config"),
      {{"limit", absl::StrCat(limit)}});
}

bool IsReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0 && entry.revents != 0;
}

SessionFacts FactsOf(SessionId id, const PeerIdentity& identity, const ub::wire::Hello& hello) {
  SessionFacts facts;
  facts.id = id;
  facts.uid = identity.uid;
  facts.pid = identity.pid;
  facts.name = PrintableName(ub::wire::GetText(hello.name));
  if (facts.name.empty()) facts.name = PrintableName(ProcessName(identity));
  facts.identity = identity.source;
  // Root and the daemon's own uid can open a read-only memfd anew for writing.
  facts.read_only_advisory = identity.uid == Uid(0) || identity.uid == Uid(::geteuid());
  return facts;
}

}  // namespace

absl::Status LoopSessionServer::Admit(Uid uid) const {
  const SessionLimits now = limits();
  if (stopping_) return StoppingRefusal();
  if (table_->total() >= now.max_sessions) return TooManySessions("in all", now.max_sessions);
  if (table_->OfUid(uid) >= now.max_sessions_per_uid) return TooManySessions("of one user", now.max_sessions_per_uid);
  return absl::OkStatus();
}

void LoopSessionServer::OnHello(ub::UniqueFd lifeline, PeerIdentity identity, const ub::wire::Hello& hello) {
  absl::Status admitted = Admit(identity.uid);
  if (!admitted.ok()) return SendRefuse(lifeline.get(), admitted);
  auto welcome = ub::wire::NewFrame<ub::wire::Welcome>();
  if (::getrandom(welcome.token.data(), welcome.token.size(), 0) != static_cast<ssize_t>(welcome.token.size())) {
    return SendRefuse(lifeline.get(), ub::ErrnoError(errno, "getrandom"));
  }
  const SessionId id(next_session_++);
  absl::StatusOr<ub::UniqueFd> page = pages_.OpenPage(id);
  if (!page.ok())
    return SendRefuse(lifeline.get(),
                      page.status().code() == absl::StatusCode::kResourceExhausted ? NoRoomRefusal() : page.status());
  welcome.session = id.value();
  welcome.boot_id = boot_id_;
  welcome.word_count = ub::wire::kWordsPerSession;
  welcome.max_fds_in_flight = FdCredits::kPerSession;
  SessionFacts facts = FactsOf(id, identity, hello);
  broker_.OpenSession(facts);
  if (hooks_.opened) hooks_.opened(facts);
  auto courier = std::make_shared<Courier>(id, facts.uid, std::move(lifeline), context_);
  // The box finds the loop only while somebody keeps the context.
  auto offers = std::make_shared<OfferBox>(std::shared_ptr<EventLoop>(context_, &loop_));
  auto session = std::make_shared<LifelineSession>(std::move(facts), welcome.token, std::move(identity.pidfd), courier,
                                                   std::move(offers));
  table_->Insert(session);
  absl::Status begun = WatchPeer(session);
  // Last: the token works from here on.
  if (begun.ok()) begun = courier->SendWelcome(ub::wire::AsBytes(welcome), page->get());
  if (!begun.ok()) EndSession(id, SessionEnd::kHangUp);
}

absl::Status LoopSessionServer::WatchPeer(const std::shared_ptr<LifelineSession>& session) {
  const SessionId id = session->facts().id;
  absl::Status started = session->courier()->Start([this, id](uint32_t events) { OnPeer(id, events); });
  if (!started.ok() || session->pidfd() < 0) return started;
  absl::StatusOr<EventLoop::WatchId> watch =
      loop_.Watch(session->pidfd(), EPOLLIN, [this, id](uint32_t) { EndSession(id, SessionEnd::kDied); });
  if (!watch.ok()) return watch.status();
  session->pidfd_watch = *watch;
  return absl::OkStatus();
}

// The lifeline hung up, or the client sent something.
void LoopSessionServer::OnPeer(SessionId id, uint32_t events) {
  std::shared_ptr<LifelineSession> session = table_->FindLive(id);
  if (!session) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return ReadOffers(session);
  const bool died = session->pidfd() >= 0 && IsReadable(session->pidfd());
  EndSession(id, died ? SessionEnd::kDied : SessionEnd::kHangUp);
}

// First nobody finds it, then nothing more is sent, then its leases end.
void LoopSessionServer::EndSession(SessionId id, SessionEnd how) {
  std::shared_ptr<LifelineSession> session = table_->Remove(id);
  if (!session) return;
  loop_.Unwatch(std::exchange(session->pidfd_watch, 0));
  const bool lingers = session->courier()->Close([this, id] { OnTaken(id); });
  session->offers().Close();
  // Before the Broker: nothing new is taken for a session that it does not know.
  if (hooks_.closing) hooks_.closing(id);
  broker_.CloseSession(id, how);
  pages_.ClosePage(id);
  if (lingers) {
    lingering_[id] = session;
  } else {
    table_->Forget(session->facts().uid);
  }
  QuitIfEmpty();
}

void LoopSessionServer::OnTaken(SessionId id) {
  auto it = lingering_.find(id);
  if (it == lingering_.end()) return;
  std::shared_ptr<LifelineSession> session = std::move(it->second);
  lingering_.erase(it);
  session->courier()->Finish();
  table_->Forget(session->facts().uid);
}

}  // namespace ubd
