// completion bash: prints the script that packaging/completion/ubctl.bash installs.
#include "client/ubctl/commands.h"
#include "client/ubctl/completion_bash.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {
namespace {

ExitCode RunCompletion(const Context& context) {
  TextReport report;
  report.set_text(kCompletionBash);
  return Print(context, report, report.text());
}

}  // namespace

void AddCompletionCommands(CommandLine& line) {
  CLI::App& group = line.Group("completion", "Print a shell's completion script");
  line.Command(group, "bash", "For bash: source <(ubctl completion bash)", RunCompletion);
}

}  // namespace ub::ctl
