#include "client/ubctl/output.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/ubctl/json.h"
#include "client/ubctl/utf8.h"
#include "proto/wire/error.h"

namespace ub::ctl {

bool WriteOut(std::string_view text) {
  bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return std::fflush(stdout) == 0 && written;
}

void Note(std::string_view line) {
  std::string text = absl::StrCat("ubctl: ", Printable(line), "\n");
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

ExitCode Print(const Context& context, const google::protobuf::Message& message, std::string_view text) {
  if (WriteOut(context.json ? std::string_view(MessageToJson(message)) : text)) return ExitCode::kOk;
  Note("standard output does not take the result; check that its disk is not full and its reader still there");
  return ExitCode::kFailed;
}

std::string ErrorLine(const absl::Status& status) {
  std::string text(status.message().data(), status.message().size());
  if (text.empty()) text = absl::StatusCodeToString(status.code());
  if (ReasonOf(status) != Reason::kNone) {
    return absl::StrCat(text, " [", std::string(ReasonName(ReasonOf(status))), "]");
  }
  if (absl::IsUnimplemented(status)) {
    return absl::StrCat(text,
                        ": the daemon is of a release that does not know this command; compare with 'ubctl version'");
  }
  if (absl::IsUnavailable(status)) {
    return absl::StrCat("the daemon went away (", text, "); look at 'systemctl status ubd' or its log");
  }
  return text;
}

ExitCode Fail(const Context& context, const absl::Status& status) {
  Note(ErrorLine(status));
  if (context.json) WriteOut(ErrorToJson(status));
  return ExitCodeFor(status);
}

}  // namespace ub::ctl
