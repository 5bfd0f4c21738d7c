// What every command shares: where the daemon is, how long to wait, and how results and failures are told. With --json
// stdout holds exactly one document, whatever happens; text goes to stderr. Not thread-safe.
#ifndef UB_UBCTL_OUTPUT_H_
#define UB_UBCTL_OUTPUT_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/src/mono_time.h"
#include "client/ubctl/exit_code.h"

namespace ub::ctl {

struct Context {
  std::string runtime_dir;
  absl::Duration timeout = absl::Seconds(5);  // for connecting and the first answer together
  bool json = false;

  Deadline AnswerDeadline() const { return Deadline::After(timeout); }
};

// Prints the message (--json) or the text, and flushes. kFailed when stdout does not take it.
ExitCode Print(const Context& context, const google::protobuf::Message& message, std::string_view text);

// Tells cause and cure on stderr, with --json also as the document, and returns the exit code.
ExitCode Fail(const Context& context, const absl::Status& status);

// One line on stderr, in both modes.
void Note(std::string_view line);

// To stdout, flushed; false when it is not taken.
bool WriteOut(std::string_view text);

// The line that Fail prints, without its end.
std::string ErrorLine(const absl::Status& status);

}  // namespace ub::ctl

#endif  // UB_UBCTL_OUTPUT_H_
