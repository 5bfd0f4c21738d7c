#include "client/src/rpc_channel.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>

#include <atomic>

#include "client/src/fork_guard.h"
#include "proto/wire/error.h"
#include "proto/wire/runtime_dir.h"

namespace ub {
namespace {

// The largest listing (65536 leases) is some 10 MiB.
constexpr int kMaxMessageBytes = 64 << 20;

// In which process gRPC was first used here; 0: not yet.
constinit std::atomic<uint64_t> g_grpc_epoch = 0;

absl::Status CheckGrpcUsable() {
  uint64_t here = ForkEpoch();
  uint64_t first = 0;
  if (g_grpc_epoch.compare_exchange_strong(first, here) || first == here) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kForked,
                   "this process was forked from one that was already connected to ubd, and gRPC cannot start again in "
                   "such a child: exec a "
                   "program (posix_spawn, subprocess, the spawn start method) that connects by itself, or fork before "
                   "the first Connect");
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& runtime_dir, absl::Time deadline) {
  if (absl::Status bad = CheckGrpcUsable(); !bad.ok()) return bad;
  absl::StatusOr<UniqueFd> fd = ConnectSocket(runtime_dir, kRpcSocketName, SOCK_STREAM, deadline);
  if (!fd.ok()) return fd.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomInsecureChannelFromFd("localhost", fd->release(), arguments);
}

void SetDeadline(grpc::ClientContext& context, Deadline deadline) {
  gpr_timespec left = gpr_time_from_nanos(absl::ToInt64Nanoseconds(deadline.left()), GPR_TIMESPAN);
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), left));
}

}  // namespace ub
