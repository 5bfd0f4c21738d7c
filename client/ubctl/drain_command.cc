// drain: stop or resume granting; with --wait, until the last lease is gone.
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/event_stream.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/signals.h"

namespace ub::ctl {
namespace {

struct DrainOptions {
  bool off = false;
  bool wait = false;
};

absl::StatusOr<uint64_t> SetDrain(Admin& admin, bool drain, Deadline deadline) {
  v1::SetDrainRequest request;
  request.set_drain(drain);
  auto response = admin.Call(&Admin::Stub::SetDrain, request, deadline);
  if (!response.ok()) return response.status();
  return response->leases_left();
}

bool EndsALease(v1::Event::Kind kind) {
  switch (kind) {
    case v1::Event::RELEASED:
    case v1::Event::RECALLED:
    case v1::Event::REVOKED:
    case v1::Event::EXPIRED:
    case v1::Event::RECLAIMED:
    case v1::Event::RECYCLED:
    case v1::Event::SESSION_CLOSED:
      return true;
    default:
      return false;
  }
}

// How many leases are left when none is, when it was stopped, or when somebody resumed granting. Asks again only when
// an event says that a lease ended.
absl::StatusOr<uint64_t> AwaitDrained(const Context& context, Admin& admin, EventStream& stream, uint64_t left) {
  while (left > 0) {
    auto event = stream.Next();
    if (!event.ok()) return event.status();
    if (!event->has_value())
      return absl::CancelledError("interrupted; the daemon goes on draining, 'ubctl drain --off' resumes");
    if ((*event)->kind() == v1::Event::RESUMED) return absl::AbortedError("somebody resumed granting meanwhile");
    if (!EndsALease((*event)->kind()) && (*event)->missed() == 0) continue;
    auto status = admin.Call(&Admin::Stub::GetStatus, v1::GetStatusRequest(), context.AnswerDeadline());
    if (!status.ok()) return status.status();
    left = status->leases();
  }
  return left;
}

absl::StatusOr<uint64_t> Drain(const Context& context, const DrainOptions& options) {
  std::optional<StopSignals> signals;
  if (options.wait) signals.emplace();  // before gRPC starts its threads
  Deadline deadline = context.AnswerDeadline();
  auto admin = Admin::Connect(context.runtime_dir, deadline);
  if (!admin.ok()) return admin.status();
  if (!options.wait) return SetDrain(**admin, !options.off, deadline);
  auto stream = EventStream::Open(**admin, deadline);  // before draining, so that no end is missed
  if (!stream.ok()) return stream.status();
  auto left = SetDrain(**admin, true, deadline);
  if (!left.ok()) return left;
  if (*left > 0) Note(absl::StrCat("draining; waiting for ", *left, " leases"));
  StopWatcher watcher(*signals, [&stream] { (*stream)->Stop(); });
  return AwaitDrained(context, **admin, **stream, *left);
}

ExitCode RunDrain(const Context& context, const DrainOptions& options) {
  auto left = Drain(context, options);
  if (!left.ok()) return Fail(context, left.status());
  DrainReport report;
  report.set_draining(!options.off);
  report.set_leases_left(*left);
  std::string text = options.off ? std::string("granting again\n")
                                 : absl::StrCat("draining: no new leases are granted; ", *left, " leases left\n");
  return Print(context, report, text);
}

}  // namespace

void AddDrainCommand(CommandLine& line) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App& drain = line.Command("drain", "Stop granting leases; those that are held stay",
                                 [options](const Context& c) { return RunDrain(c, *options); });
  CLI::Option* off = drain.add_flag("--off", options->off, "Grant again");
  drain.add_flag("--wait", options->wait, "Return when the last lease is gone")->excludes(off);
}

}  // namespace ub::ctl
