#include "daemon/session/session_server.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

#include "daemon/session/fd_room.h"
#include "daemon/session/refusal.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::shared_ptr<CourierContext> MakeContext(std::unique_ptr<EventLoop> loop, Broker& broker, HolderFdOpener open_fd,
                                            const std::shared_ptr<LiveSessions>& table) {
  // Half the limit: the other half is for files, sockets and memory of the daemon itself.
  FdCredits::Budget budget = [] { return CurrentFdRoom().limit / 2; };
  std::weak_ptr<LiveSessions> weak = table;
  auto find = [weak](SessionId id) -> std::shared_ptr<Courier> {
    auto sessions = weak.lock();
    auto session = sessions ? sessions->FindLive(id) : nullptr;
    return session ? session->courier() : nullptr;
  };
  auto context = std::make_shared<CourierContext>(std::move(loop), broker, std::move(budget), std::move(open_fd));
  context->find = std::move(find);
  return context;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionServer>> SessionServer::Create(SessionServerDeps deps, Broker& broker,
                                                                     LeasePages& pages) {
  RaiseFdLimit();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) return loop.status();
  uint64_t boot_id = 0;
  if (::getrandom(&boot_id, sizeof(boot_id), 0) != sizeof(boot_id)) return ub::ErrnoError(errno, "getrandom");
  auto server = std::make_unique<LoopSessionServer>(std::move(deps), broker, pages, *std::move(loop), boot_id);
  absl::Status started = server->Start();
  if (!started.ok()) return started;
  return std::unique_ptr<SessionServer>(std::move(server));
}

LoopSessionServer::LoopSessionServer(SessionServerDeps deps, Broker& broker, LeasePages& pages,
                                     std::unique_ptr<EventLoop> loop, uint64_t boot_id)
    : broker_(broker),
      pages_(pages),
      hooks_(std::move(deps.hooks)),
      doorman_(std::move(deps.doorman)),
      boot_id_(boot_id),
      table_(std::make_shared<LiveSessions>([&pages] { return pages.TakeBacks(); })),
      context_(MakeContext(std::move(loop), broker, std::move(deps.open_fd), table_)),
      loop_(*context_->loop),
      handshakes_(loop_,
                  [this](ub::UniqueFd lifeline, PeerIdentity identity, const ub::wire::Hello& hello) {
                    OnHello(std::move(lifeline), std::move(identity), hello);
                  }),
      connections_(loop_, std::move(deps.serve_rpc)),
      lifeline_acceptor_(
          loop_, std::move(deps.lifeline_listener),
          [this](ub::UniqueFd fd) { handshakes_.Begin(std::move(fd), limits().handshake_timeout); },
          [](int fd) { SendRefuse(fd, NoRoomRefusal()); }),
      rpc_acceptor_(
          loop_, std::move(deps.rpc_listener),
          [this](ub::UniqueFd fd) {
            const SessionLimits now = limits();
            connections_.Accept(std::move(fd), now.max_connections_per_uid, now.handshake_timeout);
          },
          [](int) {}),
      armed_ns_(kNever),
      limits_(deps.limits) {}

absl::Status LoopSessionServer::Start() {
  loop_.OnInterrupt([this] { OnStop(); });
  absl::Status started = lifeline_acceptor_.Start();
  if (started.ok()) started = rpc_acceptor_.Start();
  if (started.ok()) started = WatchDoorman();
  if (!started.ok()) return started;
  broker_.OnDeadlineChange([this] { Poke(); });
  loop_.Post([this] { Tick(); });
  return absl::OkStatus();
}

LoopSessionServer::~LoopSessionServer() {
  broker_.OnDeadlineChange([] {});
  for (SessionId id : table_->Ids()) EndSession(id, SessionEnd::kShutdown);
  for (auto& [id, session] : lingering_) session->courier()->Finish();
}

void LoopSessionServer::Run() {
  loop_.Run();
  handshakes_.RefuseAll(StoppingRefusal());
  for (SessionId id : table_->Ids()) EndSession(id, SessionEnd::kShutdown);
}

void LoopSessionServer::Stop(absl::Duration grace) {
  stop_grace_ns_.store(std::max<int64_t>(0, absl::ToInt64Nanoseconds(grace)));
  loop_.Interrupt();
}

void LoopSessionServer::OnStop() {
  const int64_t grace_ns = stop_grace_ns_.load();
  if (grace_ns < 0) return;
  stopping_ = true;
  lifeline_acceptor_.Stop();
  rpc_acceptor_.Stop();
  handshakes_.RefuseAll(StoppingRefusal());
  loop_.RunAfter(absl::Nanoseconds(grace_ns), [this] { loop_.Quit(); });
  QuitIfEmpty();
}

void LoopSessionServer::QuitIfEmpty() {
  if (stopping_ && table_->Ids().empty()) loop_.Quit();
}

void LoopSessionServer::WatchFd(int fd, std::function<void()> on_ready) {
  absl::StatusOr<EventLoop::WatchId> watch =
      loop_.Watch(fd, EPOLLIN, [ready = std::move(on_ready)](uint32_t) { ready(); });
  // Only for a descriptor that cannot be waited for, or without memory: a mistake of the caller's, seen at once in its
  // tests.
  if (!watch.ok()) std::abort();
}

void LoopSessionServer::RunAfter(absl::Duration delay, std::function<void()> what) {
  loop_.RunAfter(delay, std::move(what));
}

void LoopSessionServer::SetLimits(const SessionLimits& limits) {
  ub::MutexLock lock(&mu_);
  limits_ = limits;
}

SessionLimits LoopSessionServer::limits() const {
  ub::MutexLock lock(&mu_);
  return limits_;
}

// Whatever was armed counts as gone before the Broker is asked: a Poke that still saw the old deadline came before the
// answer.
void LoopSessionServer::ScheduleTick() {
  loop_.Cancel(std::exchange(tick_, 0));
  armed_ns_.store(kNever);
  std::optional<MonoTime> next = broker_.NextDeadline();
  if (!next) return;
  armed_ns_.store(absl::ToInt64Nanoseconds(next->since_start()));
  tick_ = loop_.RunAt(*next, [this] { Tick(); });
}

void LoopSessionServer::Tick() {
  broker_.Tick();
  ScheduleTick();
}

void LoopSessionServer::Poke() {
  std::optional<MonoTime> next = broker_.NextDeadline();
  if (next && absl::ToInt64Nanoseconds(next->since_start()) < armed_ns_.load()) loop_.Post([this] { ScheduleTick(); });
}

}  // namespace ubd
