// The daemon's Admin service as ubctl calls it: one connection, every call with a deadline, errors typed as libub's
// are. Thread-safe.
#ifndef UB_UBCTL_ADMIN_H_
#define UB_UBCTL_ADMIN_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/rpc_channel.h"
#include "client/ubctl/output.h"
#include "ub/v1/admin.grpc.pb.h"

namespace ub::ctl {

class Admin {
 public:
  using Stub = v1::Admin::Stub;

  // `deadline` is for this connection and the first call together.
  static absl::StatusOr<std::unique_ptr<Admin>> Connect(const std::string& runtime_dir, Deadline deadline);

  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, Deadline deadline) {
    grpc::ClientContext context;
    SetDeadline(context, deadline);
    Response response;
    grpc::Status status = ((*stub_).*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status, /*no_answer_means_stalled=*/true);
    return response;
  }
  Stub& stub() { return *stub_; }

 private:
  explicit Admin(const std::shared_ptr<grpc::Channel>& channel) : stub_(v1::Admin::NewStub(channel)) {}
  std::unique_ptr<Stub> stub_;
};

// Connect and one call, within the command's timeout.
template <class Request, class Response>
absl::StatusOr<Response> AskDaemon(const Context& context,
                                   grpc::Status (Admin::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                   const Request& request) {
  Deadline deadline = context.AnswerDeadline();
  auto admin = Admin::Connect(context.runtime_dir, deadline);
  if (!admin.ok()) return admin.status();
  return (*admin)->Call(method, request, deadline);
}

}  // namespace ub::ctl

#endif  // UB_UBCTL_ADMIN_H_
