#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/wire/error.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {

void FakeMemory::Reclaim(BlockId block, ReclaimOrder) {
  later_([this, block] {
    {
      ub::MutexLock lock(&mu_);
      backings_.erase(block);
    }
    sink_->BlockFree(block, /*fresh=*/true);
  });
}

int FakeMemory::BackingLocked(BlockId block) {
  ub::UniqueFd& backing = backings_[share_one_ ? BlockId(0) : block];
  if (!backing.valid()) backing.reset(::memfd_create("block", MFD_CLOEXEC));
  return backing.get();
}

absl::StatusOr<ub::UniqueFd> FakeMemory::Open(BlockId block, Access) {
  ub::MutexLock lock(&mu_);
  if (fail_) return fail_();
  const int backing = BackingLocked(block);
  ub::UniqueFd fd(::open(absl::StrCat("/proc/self/fd/", backing).c_str(), O_RDWR | O_CLOEXEC));
  if (backing < 0 || !fd.valid()) return ub::ErrnoError(errno, "opening a block");
  return fd;
}

void FakeMemory::Connect(std::function<void(std::function<void()>)> later, ReclaimSink* sink) {
  later_ = std::move(later);
  sink_ = sink;
}

void FakeMemory::FailOpen(std::function<absl::Status()> with) {
  ub::MutexLock lock(&mu_);
  fail_ = std::move(with);
}

void FakeMemory::ShareOneBacking() {
  ub::MutexLock lock(&mu_);
  share_one_ = true;
}

ino_t FakeMemory::InodeOf(BlockId block) {
  ub::MutexLock lock(&mu_);
  struct stat info = {};
  return ::fstat(BackingLocked(block), &info) == 0 ? info.st_ino : 0;
}

void EventLog::OnEvent(const Event& event) {
  ub::MutexLock lock(&mu_);
  events_.push_back(event);
  changed_.SignalAll();
}

bool EventLog::WaitFor(EventKind kind, SessionId session, absl::Duration within) {
  const absl::Time end = absl::Now() + within;
  ub::MutexLock lock(&mu_);
  for (;;) {
    for (const Event& event : events_) {
      if (event.kind == kind && event.session == session) return true;
    }
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitWithTimeout(&mu_, left);
  }
}

size_t EventLog::Count(EventKind kind) {
  ub::MutexLock lock(&mu_);
  return static_cast<size_t>(
      std::count_if(events_.begin(), events_.end(), [kind](const Event& e) { return e.kind == kind; }));
}

TestDaemon::TestDaemon(DaemonOptions options) : pages_(LeasePages::Create()) {
  PoolSpec pool;
  pool.name = "p";
  pool.kind = "host";
  pool.block_bytes = ub::MiB(2);
  pool.blocks = options.blocks;
  auto random = [](absl::Span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), uint8_t{7}); };
  broker_ = std::make_unique<Broker>(std::vector<PoolSpec>{pool}, BrokerLimits{},
                                     BrokerDeps{clock_, memory_, *pages_, events_, random});
  auto lifeline_socket = ListeningSocket::Bind(lifeline(), SOCK_SEQPACKET, {.mode = 0666});
  auto rpc_socket = ListeningSocket::Bind(rpc(), SOCK_STREAM, {.mode = 0666});
  if (!lifeline_socket.ok() || !rpc_socket.ok()) std::abort();
  lifeline_socket_ = *std::move(lifeline_socket);
  rpc_socket_ = *std::move(rpc_socket);
  SessionServerDeps deps;
  deps.lifeline_listener.reset(::fcntl(lifeline_socket_->fd(), F_DUPFD_CLOEXEC, 0));
  deps.rpc_listener.reset(::fcntl(rpc_socket_->fd(), F_DUPFD_CLOEXEC, 0));
  deps.open_fd = [this](BlockId block, Access access) { return memory_.Open(block, access); };
  deps.serve_rpc = options.serve_rpc;
  deps.limits = options.limits;
  deps.hooks = options.hooks;
  deps.doorman = options.doorman();
  auto server = SessionServer::Create(std::move(deps), *broker_, *pages_);
  if (!server.ok()) std::abort();
  server_ = *std::move(server);
  memory_.Connect([this](std::function<void()> what) { server_->RunAfter(absl::ZeroDuration(), std::move(what)); },
                  broker_.get());
  loop_ = std::thread([this] {
    loop_tid_.store(static_cast<pid_t>(::syscall(SYS_gettid)));
    server_->Run();
  });
  while (loop_tid_.load() == 0) std::this_thread::yield();
}

TestDaemon::~TestDaemon() { StopAndJoin(absl::ZeroDuration()); }

void TestDaemon::CloseListeners() {
  lifeline_socket_.reset();
  rpc_socket_.reset();
}

void TestDaemon::StopAndJoin(absl::Duration grace) {
  if (!loop_.joinable()) return;
  server_->Stop(grace);
  loop_.join();
}

void TestDaemon::Acquire(SessionId session, uint32_t blocks, std::function<void(absl::StatusOr<Grant>)> done) {
  AcquireRequest request;
  request.session = session;
  request.bytes = ub::MiB(2) * blocks;
  request.request = RequestId(next_request_.fetch_add(1));
  broker_->Acquire(request, [this, session, done](absl::StatusOr<Grant> grant) {
    if (!grant.ok()) return done(grant);
    absl::StatusOr<LeasePin> pin = broker_->Pin(session, grant->lease, grant->access);
    auto to = server_->registry().Find(session);
    if (!pin.ok() || !to) return done(absl::AbortedError("the session has gone"));
    to->Deliver(*grant, *std::move(pin), [done, grant](absl::Status first) { first.ok() ? done(grant) : done(first); });
  });
}

absl::StatusOr<Grant> TestDaemon::AcquireNow(SessionId session, uint32_t blocks, absl::Duration within) {
  struct Answer {
    ub::Mutex mu;
    std::optional<absl::StatusOr<Grant>> value ABSL_GUARDED_BY(mu);
  };
  auto answer = std::make_shared<Answer>();
  Acquire(session, blocks, [answer](absl::StatusOr<Grant> grant) {
    ub::MutexLock lock(&answer->mu);
    answer->value = std::move(grant);
  });
  auto answered = [answer] {
    ub::MutexLock lock(&answer->mu);
    return answer->value.has_value();
  };
  if (!Eventually(answered, within)) return absl::DeadlineExceededError("no answer");
  ub::MutexLock lock(&answer->mu);
  return *answer->value;
}

absl::Duration TestDaemon::LoopCpu() {
  clockid_t clock;
  timespec now = {};
  if (::pthread_getcpuclockid(loop_.native_handle(), &clock) != 0 || ::clock_gettime(clock, &now) != 0) std::abort();
  return absl::DurationFromTimespec(now);
}

uint64_t TestDaemon::LoopSleeps() {
  std::ifstream status(absl::StrCat("/proc/self/task/", loop_tid_.load(), "/status"));
  std::string key;
  uint64_t value = 0;
  while (status >> key) {
    if (key == "voluntary_ctxt_switches:" && status >> value) return value;
  }
  std::abort();
}

}  // namespace ubd::testing
