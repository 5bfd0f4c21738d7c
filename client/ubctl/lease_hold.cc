#include "client/ubctl/lease_hold.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "client/ubctl/human.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/signals.h"
#include "proto/wire/mutex.h"
#include "ub/client.h"

namespace ub::ctl {
namespace {

// What libub's event thread tells the main thread: the first event that ends the hold.
class EndOfLease {
 public:
  EndOfLease() : ready_(MakeEventFd()) {}
  int fd() const { return ready_.get(); }

  // Before the grant the id is not known yet, so every event is kept until Await looks.
  void Note(const Event& event) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    events_.push_back(event);
    Ring(ready_.get());
  }
  std::optional<absl::Status> Of(LeaseId lease) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    eventfd_t count = 0;
    (void)eventfd_read(ready_.get(), &count);
    for (const Event& event : events_) {
      if (auto status = Ends(event, lease)) return status;
    }
    events_.clear();
    return std::nullopt;
  }

 private:
  static std::optional<absl::Status> Ends(const Event& event, LeaseId lease);

  UniqueFd ready_;
  Mutex mu_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mu_);
};

std::optional<absl::Status> EndOfLease::Ends(const Event& event, LeaseId lease) {
  std::string why = event.text.empty() ? "" : absl::StrCat(": ", event.text);
  if (event.kind == Event::Kind::kDisconnected) {
    return MakeError(absl::StatusCode::kUnavailable, Reason::kSessionEnded,
                     absl::StrCat("the daemon went away", why, "; the lease ended with it"));
  }
  if (event.lease != lease) return std::nullopt;
  std::string id = absl::StrCat("lease ", lease.value());
  switch (event.kind) {
    case Event::Kind::kRevoked:
      return MakeError(absl::StatusCode::kAborted, Reason::kRevoked, absl::StrCat(id, " was revoked", why));
    case Event::Kind::kExpired:
      return MakeError(absl::StatusCode::kAborted, Reason::kExpired, absl::StrCat(id, " expired", why));
    case Event::Kind::kRecalled:
    case Event::Kind::kOwnerReleased:
      return MakeError(absl::StatusCode::kAborted, Reason::kRevoked, absl::StrCat(id, " was taken back", why));
    default:
      return std::nullopt;
  }
}

absl::StatusOr<Lease> Take(Client& client, const HoldOptions& options) {
  AcquireOptions acquire;
  acquire.pool = options.pool;
  acquire.bytes = options.bytes;
  acquire.wait = options.wait;
  acquire.ttl = options.ttl;
  acquire.cacheable = false;
  return client.Acquire(acquire);
}

void Touch(const Lease& lease) {
  for (size_t at = 0; at < lease.size(); at += static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    const_cast<volatile std::byte&>(lease.data()[at]) = std::byte{1};
  }
}

HoldReport Describe(const Client& client, const Lease& lease, const HoldOptions& options, double waited_s) {
  HoldReport report;
  report.set_lease(lease.id().value());
  report.set_pool(lease.pool());
  report.set_bytes(lease.size());
  report.set_blocks(lease.size() / lease.block_size().count());
  report.set_block_bytes(lease.block_size().count());
  report.set_page_bytes(lease.page_size().count());
  report.set_generation(lease.generation().value());
  report.set_session(client.session().value());
  report.set_pid(getpid());
  if (auto left = lease.ttl_left()) report.set_ttl_left_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(*left)));
  report.set_touched(options.touch);
  report.set_waited_s(waited_s);
  return report;
}

std::string Text(const HoldReport& report) {
  std::string ttl =
      report.has_ttl_left_ns() ? absl::StrCat(", for ", HumanDuration(report.ttl_left_ns())) : std::string();
  return absl::StrCat("holding lease ", report.lease(), ": ", HumanSize(report.bytes()), " (", report.blocks(),
                      " blocks) of pool ", report.pool(), ttl, "; INT, TERM or HUP gives it back\n");
}

// Sleeps until a signal comes or the lease ends.
absl::Status AwaitEnd(const StopSignals& signals, EndOfLease& end, LeaseId lease) {
  std::array<pollfd, 2> entries = {pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = end.fd(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (auto status = end.Of(lease)) return *status;
    if (poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return ErrnoError(errno, "poll for a signal");
    if (entries[0].revents != 0) return absl::OkStatus();
  }
}

}  // namespace

ExitCode HoldLease(const Context& context, const HoldOptions& options) {
  StopSignals signals;
  EndOfLease end;  // outlives the client, whose event thread calls it
  ConnectOptions connect;
  connect.runtime_dir = context.runtime_dir;
  connect.deadline = context.timeout;
  connect.cache_limit = Bytes(0);
  absl::StatusOr<std::unique_ptr<Client>> client = absl::UnknownError("");
  absl::StatusOr<Lease> lease = absl::UnknownError("");
  uint64_t start = NowNs();
  {
    // Nothing is held yet and libub may wait long: a signal ends the process, and with it the session and the request.
    StopWatcher watcher(signals, [&context] {
      ExitCode code = Fail(context, absl::CancelledError("interrupted before the lease was granted; nothing is held"));
      std::_Exit(static_cast<int>(code));
    });
    client = Client::Connect(connect);
    if (!client.ok()) return Fail(context, client.status());
    (*client)->OnEvent([&end](const Event& event) { end.Note(event); });
    lease = Take(**client, options);
  }
  if (!lease.ok()) return Fail(context, lease.status());
  if (options.touch) Touch(*lease);
  HoldReport report = Describe(**client, *lease, options, SecondsSince(start));
  if (ExitCode printed = Print(context, report, Text(report)); printed != ExitCode::kOk) return printed;
  absl::Status ended = AwaitEnd(signals, end, lease->id());
  if (ended.ok()) ended = lease->Release();
  if (ended.ok()) return ExitCode::kOk;
  Note(ErrorLine(ended));
  return ExitCodeFor(ended);
}

}  // namespace ub::ctl
