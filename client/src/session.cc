#include "client/src/session.h"

#include <cerrno>
#include <utility>

#include "client/src/daemon_errors.h"
#include "client/src/rpc_channel.h"
#include "proto/wire/error.h"
#include "proto/wire/runtime_dir.h"

namespace ub {
namespace {

constexpr absl::Duration kReleaseDeadline = absl::Seconds(5);
constexpr absl::Duration kFarewell = absl::Seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const ConnectOptions& options) {
  Deadline deadline = Deadline::After(options.deadline);
  std::string dir = ClientRuntimeDir(options.runtime_dir);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel(dir, absl::Now() + deadline.left());
  if (!channel.ok()) return channel.status();
  const std::string name = options.name.empty() ? program_invocation_short_name : options.name;
  absl::StatusOr<std::unique_ptr<LifelineClient>> lifeline = LifelineClient::Connect(dir, name, deadline);
  if (!lifeline.ok()) return lifeline.status();
  std::unique_ptr<Session> session(new Session(*std::move(lifeline), *std::move(channel), options.cache_limit));
  EventSink& sink = *session;
  session->events_ = std::make_unique<EventStream>(session->rpc_, sink);
  // Before any lease there is, so that no recall is missed; and it proves that calls are answered.
  if (absl::Status bad = session->AwaitWatching(deadline); !bad.ok()) return bad;
  return session;
}

Session::Session(std::unique_ptr<LifelineClient> lifeline, std::shared_ptr<grpc::Channel> channel, Bytes cache_limit)
    : lifeline_(std::move(lifeline)),
      rpc_(std::move(channel), lifeline_->token()),
      inbox_(lifeline_->fd()),
      cache_(&lifeline_->words(), cache_limit),
      transfers_(lifeline_->fd(), rpc_, inbox_, this) {}

Session::~Session() {
  events_.reset();
  transfers_.Stop();
  if (!disconnected_.load()) DropCache(Deadline::After(kFarewell)).IgnoreError();
}

absl::Status Session::CheckConnected() const { return disconnected_.load() ? SessionEnded() : absl::OkStatus(); }

absl::Status Session::Ping(Deadline deadline) {
  if (absl::Status gone = CheckConnected(); !gone.ok()) return gone;
  return rpc_.Ping(deadline);
}

absl::Status Session::DropCache(Deadline deadline) {
  LeaseList give_back;
  LeaseList dead;
  cache_.TakeAll(&give_back, &dead);
  CountRecalled(dead);
  absl::Status result = CheckConnected();
  for (std::unique_ptr<LeaseImpl>& lease : give_back) {
    // After a failure the rest is only unmapped: the daemon is not there to be told, and the session's end tells it.
    if (result.ok()) result = ReleaseNow(std::move(lease), deadline);
  }
  return result;
}

absl::Status Session::ReleaseNow(std::unique_ptr<LeaseImpl> lease, Deadline deadline) {
  lease->Unmap();
  absl::Status result = rpc_.Release(lease->info().id, deadline);
  // The daemon may have ended it at the same moment; then the cause says more than "no such lease".
  LeaseEnd end = lease->ended();
  return ReasonOf(result) == Reason::kNoSuchLease && end != LeaseEnd::kNot ? LeaseEndError(end) : result;
}

void Session::GiveBackLater(std::unique_ptr<LeaseImpl> lease) {
  // std::function wants to be copied.
  auto shared = std::make_shared<std::unique_ptr<LeaseImpl>>(std::move(lease));
  transfers_.later().Add([this, shared] { GiveBack(std::move(*shared)).IgnoreError(); });
}

absl::Status Session::GiveBack(std::unique_ptr<LeaseImpl> lease) {
  if (LeaseEnd end = lease->ended(); end != LeaseEnd::kNot) return LeaseEndError(end);
  if (!lease->cacheable()) return ReleaseNow(std::move(lease), Deadline::After(kReleaseDeadline));
  LeaseList make_room;
  LeaseList dead;
  absl::Status result;
  switch (cache_.Put(lease, &make_room, &dead)) {
    case LeaseCache::Kept::kYes:
      break;
    case LeaseCache::Kept::kGiveBack:
      result = ReleaseNow(std::move(lease), Deadline::After(kReleaseDeadline));
      break;
    case LeaseCache::Kept::kEnded:
      result = LeaseEndError(LeaseEnd::kRevoked);
      break;
  }
  for (std::unique_ptr<LeaseImpl>& old : make_room) {
    ReleaseNow(std::move(old), Deadline::After(kReleaseDeadline)).IgnoreError();
  }
  CountRecalled(dead);
  return result;
}

absl::StatusOr<Ticket> Session::Share(LeaseImpl& lease, const ShareOptions& options) {
  if (absl::Status gone = LeaseEndError(lease.ended()); !gone.ok()) return gone;
  // Even if the call fails: the daemon may have made the ticket.
  lease.MarkShared();
  return rpc_.Share(lease.info().id, options);
}

ClientStats Session::stats() const {
  return {.rpcs = rpc_.calls(),
          .leases = leases_.load(),
          .cache_hits = cache_hits_.load(),
          .recalled = recalled_.load(),
          .blocks_mapped = blocks_mapped_.load(),
          .cached_bytes = cache_.cached_bytes().count()};
}

}  // namespace ub
