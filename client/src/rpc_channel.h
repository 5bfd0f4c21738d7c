// The way from a client program to the daemon's RPC socket. libub connects by itself, so that "not running", "not
// answering" and "no access" can be told apart; gRPC's own connector hides all three behind UNAVAILABLE and retries.
// ConnectSocket is connect_socket.h's.
#ifndef UB_SRC_RPC_CHANNEL_H_
#define UB_SRC_RPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/connect_socket.h"
#include "client/src/mono_time.h"

namespace ub {

// A channel over one such connection. It does not reconnect: when the daemon goes, calls fail UNAVAILABLE.
//
// FAILED_PRECONDITION/FORKED in a child of a process that has opened a channel: gRPC's threads are not in the child,
// and its event loop is still the parent's. Such a child must exec, or the parent fork before it connects.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& runtime_dir, absl::Time deadline);

// A finished call's status as libub shows it: code, text, reason and details. DEADLINE_EXCEEDED without any answer
// becomes UNAVAILABLE/NOT_ANSWERING when `no_answer_means_stalled`; a connection that broke is
// UNAVAILABLE/SESSION_ENDED.
absl::Status FromGrpc(const grpc::Status& status, bool no_answer_means_stalled = false);

// Sets a call's deadline on the monotonic clock.
void SetDeadline(grpc::ClientContext& context, Deadline deadline);

}  // namespace ub

#endif  // UB_SRC_RPC_CHANNEL_H_
