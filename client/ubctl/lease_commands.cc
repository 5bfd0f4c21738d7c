// lease hold, lease revoke.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ubctl/admin.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/lease_hold.h"
#include "client/ubctl/report.pb.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

struct HoldText {
  std::string pool;
  std::string size;
  std::string wait = "0";
  std::string ttl;
  bool touch = false;
};

ExitCode RunHold(const Context& context, const HoldText& text) {
  HoldOptions options;
  options.pool = text.pool;
  options.bytes = *ParseSize(text.size);  // all were checked when the line was parsed
  options.wait = *ParseDuration(text.wait);
  if (!text.ttl.empty()) options.ttl = *ParseDuration(text.ttl);
  options.touch = text.touch;
  return HoldLease(context, options);
}

struct RevokeOptions {
  uint64_t lease = 0;
  std::string reason;
};

ExitCode RunRevoke(const Context& context, const RevokeOptions& options) {
  v1::RevokeLeaseRequest request;
  request.set_lease(options.lease);
  request.set_reason(options.reason);
  auto response = AskDaemon(context, &Admin::Stub::RevokeLease, request);
  if (!response.ok()) return Fail(context, response.status());
  RevokeReport report;
  report.set_lease(options.lease);
  report.set_revoked(true);
  return Print(context, report, absl::StrCat("lease ", options.lease, " revoked\n"));
}

}  // namespace

void AddLeaseCommands(CommandLine& line) {
  CLI::App& group = line.Group("lease", "Hold or revoke a lease");
  auto hold = std::make_shared<HoldText>();
  CLI::App& hold_app = line.Command(group, "hold", "Take a lease and hold it until INT, TERM or HUP",
                                    [hold](const Context& c) { return RunHold(c, *hold); });
  hold_app.add_option("SIZE", hold->size, "How much, such as 64MiB; rounded up to whole blocks")
      ->required()
      ->check(SizeValue())
      ->type_name("SIZE");
  hold_app.add_option("--pool", hold->pool, "From this pool (default: the first one)")->type_name("NAME");
  hold_app.add_option("--wait", hold->wait, "Wait so long for free memory")
      ->check(DurationValue())
      ->type_name("DURATION")
      ->capture_default_str();
  hold_app.add_option("--ttl", hold->ttl, "Let the daemon end the lease after this time")
      ->check(PositiveDurationValue())
      ->type_name("DURATION");
  hold_app.add_flag("--touch", hold->touch, "Write to every page");

  auto revoke = std::make_shared<RevokeOptions>();
  CLI::App& revoke_app = line.Command(group, "revoke", "End somebody's lease",
                                      [revoke](const Context& c) { return RunRevoke(c, *revoke); });
  revoke_app.add_option("ID", revoke->lease, "As 'ubctl leases' shows it")->required()->check(CLI::PositiveNumber);
  revoke_app.add_option("--reason", revoke->reason, "Told to the holder and to the audit log")->type_name("TEXT");
}

}  // namespace ub::ctl
