#include "daemon/rpc/status.h"

#include <string>

#include "daemon/rpc/text.h"
#include "proto/wire/error.h"
#include "ub/v1/error.pb.h"

namespace ubd {
namespace {

// gRPC's default limit on all metadata of a call is 8 KiB, counted after base64; text and details travel in it twice.
constexpr size_t kMaxText = 1536;
constexpr size_t kMaxDetail = 256;
constexpr int kMaxDetails = 8;

// At most `limit` bytes, cut between characters.
std::string Cut(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string text = Cut(CleanText(std::string(status.message())), kMaxText);
  // The codes of absl are the codes of gRPC, by number.
  auto code = static_cast<grpc::StatusCode>(status.raw_code());
  ub::Reason reason = ub::ReasonOf(status);
  if (reason == ub::Reason::kNone) return grpc::Status(code, text);

  ub::v1::ErrorInfo info;
  info.set_reason(std::string(ub::ReasonName(reason)));
  info.set_domain("ub");
  int left = kMaxDetails;
  for (const auto& [name, value] : ub::DetailsOf(status)) {
    if (left-- == 0) break;
    (*info.mutable_metadata())[Cut(CleanText(name), kMaxDetail)] = Cut(CleanText(value), kMaxDetail);
  }
  ub::v1::StatusDetails details;
  details.set_code(status.raw_code());
  details.set_message(text);
  google::protobuf::Any* any = details.add_details();
  any->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  info.SerializeToString(any->mutable_value());
  return grpc::Status(code, text, details.SerializeAsString());
}

}  // namespace ubd
