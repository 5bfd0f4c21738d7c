#include "client/ubctl/exit_code.h"

#include "proto/wire/error.h"

namespace ub::ctl {

ExitCode ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  switch (ReasonOf(status)) {
    case Reason::kNotRunning:
    case Reason::kStopping:
    case Reason::kSessionEnded:
      return ExitCode::kNotRunning;
    case Reason::kNotAnswering:
      return ExitCode::kNotAnswering;
    case Reason::kNone:
      // A connection that broke carries no reason of ours.
      return absl::IsUnavailable(status) ? ExitCode::kNotRunning : ExitCode::kFailed;
    default:
      return ExitCode::kFailed;
  }
}

}  // namespace ub::ctl
