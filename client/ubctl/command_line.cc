#include "client/ubctl/command_line.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/json.h"
#include "client/ubctl/report.pb.h"
#include "proto/wire/runtime_dir.h"
#include "proto/wire/size_text.h"
#include "proto/wire/version.h"

namespace ub::ctl {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 ok, 1 failed, 2 usage, 3 daemon not running, 4 daemon not answering,\n"
    "5 warnings only, 6 could not be checked. See ubctl(1).";
constexpr absl::Duration kLongest = absl::Hours(24 * 366);

// Needed before the line is parsed: a line that cannot be parsed also owes its reader a document.
bool WantsJson(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--") return false;
    if (argument == "--json") return true;
  }
  return false;
}

std::string Message(const absl::Status& status) { return {status.message().data(), status.message().size()}; }

std::string CheckDuration(const std::string& text, absl::Duration least) {
  auto parsed = ParseDuration(text);
  if (!parsed.ok()) return Message(parsed.status());
  if (*parsed < least) return absl::StrCat("bad duration \"", text, "\": must be more than 0");
  if (*parsed > kLongest) return absl::StrCat("bad duration \"", text, "\": longer than a year");
  return {};
}

}  // namespace

CLI::Validator SizeValue() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        auto parsed = ParseSize(text);
        if (!parsed.ok()) return Message(parsed.status());
        return parsed->count() == 0 ? "bad size \"" + text + "\": must be at least 1 byte" : "";
      },
      "");
}

CLI::Validator DurationValue() {
  return CLI::Validator([](std::string& text) { return CheckDuration(text, absl::ZeroDuration()); }, "");
}

CLI::Validator PositiveDurationValue() {
  return CLI::Validator([](std::string& text) { return CheckDuration(text, absl::Nanoseconds(1)); }, "");
}

CommandLine::CommandLine() : app_("ubctl - look at and steer ubd, the unified buffer daemon", "ubctl") {
  app_.fallthrough();  // inherited by the commands: global options may follow them
  app_.require_subcommand(1);
  app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app_.get_formatter()->label("Subcommands", "Commands");
  app_.footer(kFooter);
  app_.set_version_flag("--version", absl::StrCat("ubctl ", std::string(ReleaseVersion())));
  app_.add_option("--runtime-dir", context_.runtime_dir,
                  "Where the daemon's sockets are (default: $UB_RUNTIME_DIR, else /run/ubd for root,\n"
                  "else $XDG_RUNTIME_DIR/ubd, else /tmp/ubd-UID; /run/ubd if no daemon is there)")
      ->type_name("DIR");
  app_.add_option("--timeout", timeout_, "How long to wait for the daemon's first answer")
      ->check(PositiveDurationValue())
      ->type_name("DURATION")
      ->capture_default_str();
  app_.add_flag("--json", context_.json, "Print exactly one JSON document on standard output");
}

CLI::App& CommandLine::Command(const std::string& name, const std::string& help, Run run) {
  return Command(app_, name, help, std::move(run));
}

CLI::App& CommandLine::Command(CLI::App& group, const std::string& name, const std::string& help, Run run) {
  CLI::App* command = group.add_subcommand(name, help);
  command->callback([this, run = std::move(run)] { chosen_ = run; });
  return *command;
}

CLI::App& CommandLine::Group(const std::string& name, const std::string& help) {
  CLI::App* group = app_.add_subcommand(name, help);
  group->require_subcommand(1);
  return *group;
}

int CommandLine::Usage(const CLI::ParseError& error, bool json) {
  if (error.get_exit_code() == 0) {  // --help or --version: text was asked for
    bool help = error.get_name() == "CallForHelp" || error.get_name() == "CallForAllHelp";
    TextReport report;
    report.set_text(help ? app_.help() : absl::StrCat("ubctl ", std::string(ReleaseVersion()), "\n"));
    context_.json = json;
    return static_cast<int>(Print(context_, report, report.text()));
  }
  std::string what = error.what();
  // CLI11 counts commands before it looks at words that are none.
  std::vector<std::string> unknown = app_.remaining();
  if (error.get_name() == "RequiredError" && app_.get_subcommands().empty() && !unknown.empty()) {
    what = absl::StrCat("no command \"", unknown.front(), "\"");
  }
  Note(what);
  Note("run 'ubctl --help' or 'ubctl COMMAND --help' for what is right");
  if (json) WriteOut(UsageErrorToJson(what));
  return static_cast<int>(ExitCode::kUsage);
}

int CommandLine::Main(int argc, char** argv) {
  bool json = WantsJson(argc, argv);
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 reports by exceptions; they end here
    return Usage(error, json);
  }
  context_.timeout = *ParseDuration(timeout_);
  context_.runtime_dir = ClientRuntimeDir(context_.runtime_dir);
  return static_cast<int>(chosen_(context_));
}

}  // namespace ub::ctl
