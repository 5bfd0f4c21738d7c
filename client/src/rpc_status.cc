#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/daemon_errors.h"
#include "client/src/rpc_channel.h"
#include "proto/wire/error.h"
#include "ub/v1/error.pb.h"

namespace ub {
namespace {

struct Info {
  Reason reason = Reason::kNone;
  ErrorDetails details;
};

// The ErrorInfo among the status details, whichever package its type URL names.
Info InfoOf(const grpc::Status& status) {
  Info info;
  v1::StatusDetails all;
  if (status.error_details().empty() || !all.ParseFromString(status.error_details())) return info;
  for (const auto& any : all.details()) {
    v1::ErrorInfo error;
    if (!std::string_view(any.type_url()).ends_with(".ErrorInfo") || !error.ParseFromString(any.value())) continue;
    info.reason = ReasonFromName(error.reason());
    for (const auto& [name, value] : error.metadata()) info.details.emplace_back(name, value);
    return info;
  }
  return info;
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status, bool no_answer_means_stalled) {
  if (status.ok()) return absl::OkStatus();
  Info info = InfoOf(status);
  bool unexplained = info.reason == Reason::kNone && info.details.empty();
  if (unexplained && no_answer_means_stalled && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return NotAnswering();
  if (unexplained && status.error_code() == grpc::StatusCode::UNAVAILABLE) return SessionEnded();
  auto code = static_cast<absl::StatusCode>(status.error_code());
  return MakeError(code, info.reason,
                   status.error_message().empty() ? "the daemon gave no reason" : status.error_message(),
                   std::move(info.details));
}

}  // namespace ub
