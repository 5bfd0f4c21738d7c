// ubctl's command line. Commands register themselves here, one file per group; global options are taken before and
// after the command. Usage errors exit with 2 and, with --json, still print one document. Not thread-safe.
#ifndef UB_UBCTL_COMMAND_LINE_H_
#define UB_UBCTL_COMMAND_LINE_H_

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>

#include "client/ubctl/output.h"

namespace ub::ctl {

class CommandLine {
 public:
  using Run = std::function<ExitCode(const Context&)>;

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // A command of the top level, or of `group`; `run` is called when the line names it. The App is for its options.
  CLI::App& Command(const std::string& name, const std::string& help, Run run);
  CLI::App& Command(CLI::App& group, const std::string& name, const std::string& help, Run run);
  // A word that only introduces others: `lease hold`, `lease revoke`.
  CLI::App& Group(const std::string& name, const std::string& help);

  // Parses, runs, and returns the process's exit code.
  int Main(int argc, char** argv);

 private:
  int Usage(const CLI::ParseError& error, bool json);

  CLI::App app_;
  Context context_;
  std::string timeout_ = "5s";
  Run chosen_;
};

// Option values, checked while the line is parsed by the parsers that the config file uses (proto/wire/size_text.h).
CLI::Validator SizeValue();      // at least 1 byte
CLI::Validator DurationValue();  // 0 or more, finite
CLI::Validator PositiveDurationValue();

}  // namespace ub::ctl

#endif  // UB_UBCTL_COMMAND_LINE_H_
