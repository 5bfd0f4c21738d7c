// absl::Status with a reason and details (proto/wire/error.h) as gRPC carries it: code, text, and in the trailing
// metadata `grpc-status-details-bin` a google.rpc.Status with one google.rpc.ErrorInfo, which stock tooling reads.
// Pure; thread-safe.
#ifndef UBD_RPC_STATUS_H_
#define UBD_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace ubd {

// Text and details are cut so that they fit into a header block that every client accepts.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace ubd

#endif  // UBD_RPC_STATUS_H_
