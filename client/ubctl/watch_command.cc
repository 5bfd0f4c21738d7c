// watch: events as they happen, until a signal or the daemon's end.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/event_stream.h"
#include "client/ubctl/human.h"
#include "client/ubctl/json_array.h"
#include "client/ubctl/signals.h"
#include "client/ubctl/utf8.h"

namespace ub::ctl {
namespace {

constexpr char kFormat[] = "%-12s  %-14s  %8s  %8s  %6s  %8s  %-10s  %9s  %s";

// One line of a table whose rows are not known beforehand: fixed widths.
std::string Line(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1) + "\n"; }

std::string Header() {
  return Line(absl::StrFormat(kFormat, "TIME", "EVENT", "LEASE", "SESSION", "UID", "PID", "POOL", "SIZE", "TEXT"));
}

std::string Row(const v1::Event& event) {
  auto number = [](bool set, uint64_t value) { return set ? absl::StrCat(value) : std::string("-"); };
  std::string row =
      Line(absl::StrFormat(kFormat, HumanTime(event.unix_time_ns()), v1::Event::Kind_Name(event.kind()),
                           number(event.has_lease(), event.lease()), number(event.has_session(), event.session()),
                           number(event.has_uid(), event.uid()), event.has_pid() ? absl::StrCat(event.pid()) : "-",
                           event.has_pool() ? Printable(event.pool()) : "-",
                           event.has_bytes() ? HumanSize(event.bytes()) : "-", Printable(event.text())));
  if (event.missed() == 0) return row;
  return absl::StrCat("(", event.missed(), " events missed: this reader was slow; look at the listings)\n", row);
}

absl::Status Follow(EventStream& stream, bool json, JsonArray& array) {
  while (true) {
    auto event = stream.Next();
    if (!event.ok()) return event.status();
    if (!event->has_value()) return absl::OkStatus();
    if (!(json ? array.Add(**event) : WriteOut(Row(**event)))) {
      return absl::UnknownError("standard output does not take the events; is its reader still there?");
    }
  }
}

ExitCode RunWatch(const Context& context) {
  StopSignals signals;
  Deadline deadline = context.AnswerDeadline();
  auto admin = Admin::Connect(context.runtime_dir, deadline);
  if (!admin.ok()) return Fail(context, admin.status());
  auto stream = EventStream::Open(**admin, deadline);
  if (!stream.ok()) return Fail(context, stream.status());
  if (!context.json) WriteOut(Header());
  JsonArray array;
  absl::Status ended;
  {
    StopWatcher watcher(signals, [&stream] { (*stream)->Stop(); });
    ended = Follow(**stream, context.json, array);
  }
  if (context.json) array.Close();
  if (ended.ok()) return ExitCode::kOk;
  Note(ErrorLine(ended));  // the document is the array; a second one would make it unreadable
  return ExitCodeFor(ended);
}

}  // namespace

void AddWatchCommand(CommandLine& line) {
  line.Command("watch", "Events as they happen, until interrupted (--json: one array, closed at the end)", RunWatch);
}

}  // namespace ub::ctl
