// status: what is wrong first, then the figures. version: both sides', across protocol versions.
#include "absl/strings/str_cat.h"
#include "client/ubctl/admin.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/human.h"
#include "client/ubctl/report.pb.h"
#include "client/ubctl/status_text.h"
#include "client/ubctl/table.h"
#include "proto/wire/error.h"
#include "proto/wire/version.h"

namespace ub::ctl {
namespace {

ExitCode RunStatus(const Context& context) {
  auto status = AskDaemon(context, &Admin::Stub::GetStatus, v1::GetStatusRequest());
  if (!status.ok()) return Fail(context, status.status());
  if (std::string remedy = ProtocolRemedy(status->protocol()); !remedy.empty()) status->add_problem(remedy);
  return Print(context, *status, StatusText(*status));
}

ExitCode RunVersion(const Context& context) {
  VersionReport report;
  report.mutable_ubctl()->set_version(std::string(ReleaseVersion()));
  report.mutable_ubctl()->set_protocol(ProtocolVersion());
  std::string text = absl::StrCat("ubctl ", std::string(ReleaseVersion()), ", protocol ", ProtocolVersion(), "\n");
  auto status = AskDaemon(context, &Admin::Stub::GetStatus, v1::GetStatusRequest());
  if (status.ok()) {
    report.mutable_daemon()->set_version(status->version());
    report.mutable_daemon()->set_protocol(status->protocol());
    std::string remedy = ProtocolRemedy(status->protocol());
    report.set_compatible(remedy.empty());
    absl::StrAppend(&text, "ubd   ", status->version(), ", protocol ", status->protocol(), "\n");
    if (!remedy.empty()) {
      report.set_remedy(remedy);
      absl::StrAppend(&text, remedy, "\n");
    }
  } else {
    report.set_daemon_error(ErrorLine(status.status()));
    absl::StrAppend(&text, "ubd   not reached: ", ErrorLine(status.status()), "\n");
  }
  return Print(context, report, text);
}

}  // namespace

void AddStatusCommands(CommandLine& line) {
  line.Command("status", "What is wrong and what to do, then the daemon's figures", RunStatus);
  line.Command("version", "Versions of ubctl and of the daemon", RunVersion);
}

}  // namespace ub::ctl
