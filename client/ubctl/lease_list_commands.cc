// leases, sessions.
#include "client/ubctl/admin.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/listing_text.h"

namespace ub::ctl {
namespace {

ExitCode RunLeases(const Context& context) {
  auto list = AskDaemon(context, &Admin::Stub::ListLeases, v1::ListLeasesRequest());
  if (!list.ok()) return Fail(context, list.status());
  return Print(context, *list, LeasesText(*list));
}

ExitCode RunSessions(const Context& context) {
  auto list = AskDaemon(context, &Admin::Stub::ListSessions, v1::ListSessionsRequest());
  if (!list.ok()) return Fail(context, list.status());
  return Print(context, *list, SessionsText(*list));
}

}  // namespace

void AddLeaseListCommands(CommandLine& line) {
  line.Command("leases", "Leases that you may see, with their holders", RunLeases);
  line.Command("sessions", "Client processes that you may see", RunSessions);
}

}  // namespace ub::ctl
