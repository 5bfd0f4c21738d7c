// top: a live view of pools and sessions, redrawn on an interval.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "client/ubctl/commands.h"
#include "client/ubctl/event_counter.h"
#include "client/ubctl/json_array.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/signals.h"
#include "client/ubctl/status_text.h"
#include "client/ubctl/terminal.h"
#include "client/ubctl/top_view.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

struct TopOptions {
  std::string interval = "1s";
  uint64_t count = 0;  // 0: for ever
};

// Asks the daemon for one picture after the other.
class Camera {
 public:
  Camera(const Context& context, Admin& admin, const EventCounter& counter)
      : context_(context), admin_(admin), counter_(counter) {}
  absl::StatusOr<TopSnapshot> Take();

 private:
  void SetRates(TopSnapshot& snapshot);

  const Context& context_;
  Admin& admin_;
  const EventCounter& counter_;
  bool first_ = true;
  uint64_t before_ns_ = 0;
  EventCounts counts_before_;
  uint64_t transfers_before_ = 0;
  uint64_t bytes_before_ = 0;
};

absl::StatusOr<TopSnapshot> Camera::Take() {
  Deadline deadline = context_.AnswerDeadline();
  auto status = admin_.Call(&Admin::Stub::GetStatus, v1::GetStatusRequest(), deadline);
  if (!status.ok()) return status.status();
  auto pools = admin_.Call(&Admin::Stub::ListPools, v1::ListPoolsRequest(), deadline);
  if (!pools.ok()) return pools.status();
  auto sessions = admin_.Call(&Admin::Stub::ListSessions, v1::ListSessionsRequest(), deadline);
  if (!sessions.ok()) return sessions.status();
  auto path = admin_.Call(&Admin::Stub::GetPath, v1::GetPathRequest(), deadline);
  if (!path.ok() && !absl::IsUnimplemented(path.status())) return path.status();
  TopSnapshot snapshot;
  if (path.ok()) *snapshot.mutable_path() = *std::move(path);
  snapshot.set_unix_time_ns(absl::ToUnixNanos(absl::Now()));
  *snapshot.mutable_status() = *std::move(status);
  if (std::string remedy = ProtocolRemedy(snapshot.status().protocol()); !remedy.empty()) {
    snapshot.mutable_status()->add_problem(remedy);
  }
  snapshot.mutable_pools()->Swap(pools->mutable_pools());
  snapshot.mutable_sessions()->Swap(sessions->mutable_sessions());
  std::stable_sort(snapshot.mutable_sessions()->begin(), snapshot.mutable_sessions()->end(),
                   [](const v1::SessionInfo& a, const v1::SessionInfo& b) { return a.bytes() > b.bytes(); });
  SetRates(snapshot);
  return snapshot;
}

void Camera::SetRates(TopSnapshot& snapshot) {
  uint64_t now = NowNs();
  EventCounts counts = counter_.Counts();
  uint64_t transfers = 0;
  uint64_t bytes = 0;
  for (const v1::PathCount& count : snapshot.path().counts()) {
    transfers += count.transfers();
    bytes += count.bytes();
  }
  double seconds = static_cast<double>(now - before_ns_) / 1e9;
  if (!first_ && seconds > 0) {
    auto rate = [&](v1::Event::Kind kind) {
      return static_cast<double>(counts.by_kind[kind] - counts_before_.by_kind[kind]) / seconds;
    };
    snapshot.set_granted_per_s(rate(v1::Event::GRANTED));
    snapshot.set_released_per_s(rate(v1::Event::RELEASED));
    snapshot.set_reclaimed_per_s(rate(v1::Event::RECLAIMED));
    snapshot.set_recalled_per_s(rate(v1::Event::RECALLED));
    snapshot.set_recycled_per_s(rate(v1::Event::RECYCLED));
    if (snapshot.has_path()) {
      snapshot.set_transfers_per_s(static_cast<double>(transfers - transfers_before_) / seconds);
      snapshot.set_transfer_bytes_per_s(static_cast<double>(bytes - bytes_before_) / seconds);
    }
    snapshot.set_events_missed(counts.missed - counts_before_.missed);
  }
  first_ = false;
  before_ns_ = now;
  counts_before_ = counts;
  transfers_before_ = transfers;
  bytes_before_ = bytes;
}

// Where the pictures go: a terminal, a pipe, or a JSON array.
class Screen {
 public:
  explicit Screen(bool json) : json_(json), terminal_(json ? nullptr : Terminal::Open()) {}
  ~Screen() {
    if (json_) array_.Close();
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool Show(const TopSnapshot& snapshot) {
    if (json_) return array_.Add(snapshot);
    if (terminal_ == nullptr) return WriteOut(TopText(snapshot, {}) + "\n");
    TerminalSize size = terminal_->Size();
    return terminal_->Draw(TopText(snapshot, {size.columns, size.rows, /*colour=*/true}));
  }
  int keys_fd() const { return terminal_ == nullptr ? -1 : STDIN_FILENO; }
  bool WantsToLeave() { return terminal_->WantsToLeave(); }

 private:
  bool json_;
  std::unique_ptr<Terminal> terminal_;
  JsonArray array_;
};

enum class Woken { kInterval, kLeave, kDaemonGone };

Woken Sleep(const StopSignals& signals, const EventCounter& counter, Screen& screen, absl::Duration interval) {
  for (Deadline next = Deadline::After(interval); !next.passed();) {
    std::array<pollfd, 3> entries = {pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
                                     pollfd{.fd = counter.fd(), .events = POLLIN, .revents = 0},
                                     pollfd{.fd = screen.keys_fd(), .events = POLLIN, .revents = 0}};
    if (poll(entries.data(), entries.size(), next.poll_ms()) <= 0) continue;
    if (entries[0].revents != 0) return Woken::kLeave;
    if (entries[1].revents != 0) return Woken::kDaemonGone;
    if (entries[2].revents != 0 && screen.WantsToLeave()) return Woken::kLeave;
  }
  return Woken::kInterval;
}

absl::Status Loop(Camera& camera, const StopSignals& signals, const EventCounter& counter, Screen& screen,
                  const TopOptions& options) {
  absl::Duration interval = *ParseDuration(options.interval);
  for (uint64_t shown = 1;; ++shown) {
    auto snapshot = camera.Take();
    if (!snapshot.ok()) return snapshot.status();
    if (!screen.Show(*snapshot))
      return absl::UnknownError("standard output does not take the view; is its reader still there?");
    if (shown == options.count) return absl::OkStatus();
    switch (Sleep(signals, counter, screen, interval)) {
      case Woken::kInterval:
        break;
      case Woken::kLeave:
        return absl::OkStatus();
      case Woken::kDaemonGone:
        return counter.Ended();
    }
  }
}

ExitCode RunTop(const Context& context, const TopOptions& options) {
  StopSignals signals;
  Deadline deadline = context.AnswerDeadline();
  auto admin = Admin::Connect(context.runtime_dir, deadline);
  if (!admin.ok()) return Fail(context, admin.status());
  auto stream = EventStream::Open(**admin, deadline);
  if (!stream.ok()) return Fail(context, stream.status());
  EventCounter counter(*std::move(stream));
  Camera camera(context, **admin, counter);
  absl::Status ended;
  {
    Screen screen(context.json);  // gone, and the terminal restored, before anything is said
    ended = Loop(camera, signals, counter, screen, options);
  }
  if (ended.ok()) return ExitCode::kOk;
  Note(ErrorLine(ended));
  return ExitCodeFor(ended);
}

}  // namespace

void AddTopCommand(CommandLine& line) {
  auto options = std::make_shared<TopOptions>();
  CLI::App& top = line.Command("top", "Live view of pools and sessions; q or Ctrl-C leaves",
                               [options](const Context& c) { return RunTop(c, *options); });
  top.add_option("--interval", options->interval, "Time between two pictures")
      ->check(PositiveDurationValue())
      ->type_name("DURATION")
      ->capture_default_str();
  top.add_option("--count", options->count, "Leave after so many pictures (default: go on)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
}

}  // namespace ub::ctl
