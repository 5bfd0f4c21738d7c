// The way from a client program to the daemon's RPC socket. libub connects by itself, so that "not running", "not answering" and "no
// access" can be told apart; gRPC's own connector hides all three behind UNAVAILABLE and retries.
#ifndef UB_SRC_RPC_CHANNEL_H_
#define UB_SRC_RPC_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/unique_fd.h"

namespace ub {

// Connects `type` (SOCK_STREAM, SOCK_SEQPACKET) to a socket in the runtime directory. UNAVAILABLE/NOT_RUNNING: nothing listens (ENOENT, ECONNREFUSED);
// UNAVAILABLE/NOT_ANSWERING: the listener's backlog stayed full until the deadline; PERMISSION_DENIED/SOCKET_ACCESS names path, mode and group.
absl::StatusOr<UniqueFd> ConnectSocket(const std::string& runtime_dir, std::string_view socket_name, int type, absl::Time deadline);

// A channel over one such connection. It does not reconnect: when the daemon goes, calls fail UNAVAILABLE.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& runtime_dir, absl::Time deadline);

// A finished call's status as libub shows it: code, text, reason and details. DEADLINE_EXCEEDED without any answer becomes UNAVAILABLE/NOT_ANSWERING
// when `no_answer_means_stalled`.
absl::Status FromGrpc(const grpc::Status& status, bool no_answer_means_stalled = false);

}  // namespace ub

#endif  // UB_SRC_RPC_CHANNEL_H_
