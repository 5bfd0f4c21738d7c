#include "client/ubctl/status_text.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/human.h"
#include "client/ubctl/table.h"
#include "client/ubctl/utf8.h"
#include "proto/wire/version.h"

namespace ub::ctl {
namespace {

std::string StateLine(const v1::Status& status) {
  if (status.state() == "draining") return "draining: no new leases are granted; 'ubctl drain --off' resumes";
  if (status.state() == "stopping") return "stopping: the daemon is going down";
  return status.state();
}

}  // namespace

std::string ProtocolRemedy(uint32_t daemon_protocol) {
  uint32_t ours = ProtocolVersion();
  if (daemon_protocol == ours) return {};
  std::string differs = absl::StrCat("ubctl speaks protocol ", ours, ", the daemon ", daemon_protocol, ": ");
  if (daemon_protocol < ours) {
    return differs + "the daemon is the older one; restart it with the installed release (systemctl restart ubd)";
  }
  return differs +
         "this ubctl is the older one; install the daemon's release, and restart jobs that use the older libub";
}

std::string StatusText(const v1::Status& status) {
  std::string text;
  if (status.problem().empty()) {
    text = absl::StrCat("ubd ", Printable(status.version()), " is ", Printable(status.state()), ", no problems\n\n");
  } else {
    text = absl::StrCat("ubd ", Printable(status.version()), " is ", Printable(status.state()), "; problems:\n");
    for (const std::string& problem : status.problem()) absl::StrAppend(&text, "  ! ", Printable(problem), "\n");
    text += "\n";
  }
  std::vector<std::pair<std::string, std::string>> rows = {
      {"state", StateLine(status)},
      {"pid", absl::StrCat(status.pid())},
      {"up", HumanDuration(status.uptime_ns())},
      {"boot", HumanDuration(status.boot_ns())},
      {"protocol", absl::StrCat(status.protocol())},
      {"runtime dir", status.runtime_dir()},
      {"config", status.config_path()},
      {"sessions", absl::StrCat(status.sessions())},
      {"leases", absl::StrCat(status.leases())},
      {"waiters", absl::StrCat(status.waiters())},
      {"reclaimed", absl::StrCat(status.reclaimed_leases(), " leases of ", status.reclaimed_sessions(),
                                 " sessions that died holding them")},
      {"fds", absl::StrCat(status.fds_open(), " of ", status.fds_limit())},
      {"reuse test", status.reuse_test()},
      {"isolation", status.isolation_advisory() ? "advisory for you: you are root or have the daemon's uid, so the "
                                                  "kernel cannot keep read-only shares read-only"
                                                : "enforced for you by the kernel"},
  };
  return text + KeyValueText(rows);
}

}  // namespace ub::ctl
