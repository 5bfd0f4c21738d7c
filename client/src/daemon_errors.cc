#include "client/src/daemon_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/src/lease_registry.h"
#include "proto/wire/error.h"
#include "proto/wire/version.h"

namespace ub {

absl::Status SessionEnded() { return LeaseEndError(LeaseEnd::kDisconnected); }

absl::Status NotAnswering() {
  return MakeError(
      absl::StatusCode::kUnavailable, Reason::kNotAnswering,
      "ubd is listening but does not answer: it is stopped or overloaded; try again, or see systemctl status ubd");
}

absl::Status MalformedLifeline(std::string_view what) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, Reason::kMalformedFrame,
      absl::StrCat("the daemon sent ", std::string(what), " on the lifeline; is it really ubd, and of this release?"));
}

absl::Status VersionMismatch(uint32_t daemon_protocol) {
  uint32_t ours = ProtocolVersion();
  std::string remedy = daemon_protocol < ours ? "upgrade ubd and restart it (systemctl restart ubd)"
                                              : "rebuild this program with the newer libub and restart it";
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kVersionMismatch,
                   absl::StrCat("this program speaks protocol ", ours, " (libub ", std::string(ReleaseVersion()),
                                "), ubd speaks protocol ", daemon_protocol, ": ", remedy),
                   {{"client", absl::StrCat(ours)}, {"daemon", absl::StrCat(daemon_protocol)}, {"remedy", remedy}});
}

absl::Status FromWire(int32_t code, std::string_view reason, std::string_view text) {
  bool known = code > 0 && code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  return MakeError(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal, ReasonFromName(reason),
                   text.empty() ? "the daemon gave no reason" : text);
}

}  // namespace ub
