#include "daemon/rpc/server.h"

#include <grpc/compression.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/broker_service.h"
#include "daemon/rpc/call.h"
#include "daemon/rpc/context.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/reflection_service.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// Requests are small: the largest has a ticket and a pool name.
constexpr int kMaxRequestBytes = 64 << 10;
constexpr int kMaxMetadataBytes = 8 << 10;
constexpr int kMaxStreamsPerConnection = 256;
// All buffers of all connections: thousands of sessions at rest (some 30 KiB each) and a flood beside them.
constexpr size_t kMaxBufferBytes = size_t{256} << 20;
constexpr int kQueueThreads = 2;
// For a file or memory that is just being opened; its caller has gone.
constexpr absl::Duration kWorkersGrace = absl::Seconds(1);
constexpr absl::Duration kFarewell = absl::Milliseconds(100);

void ConfigureLimits(grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("ubd");
  quota.Resize(kMaxBufferBytes);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  // The kernel tells of a peer's death at once; pings would only wake an idle daemon. Windows stay at their first size.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A small message that unpacks to a huge one is not worth what compression saves on a local socket.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
}

class GrpcServer : public RpcServer {
 public:
  explicit GrpcServer(RpcServerDeps deps)
      : context_(std::move(deps)), broker_(context_), admin_(context_), health_(context_), reflection_(context_) {
    grpc::ServerBuilder builder;
    ConfigureLimits(builder);
    builder.RegisterService(&broker_.service());
    builder.RegisterService(&admin_.service());
    builder.RegisterService(&health_.service());
    builder.RegisterService(&reflection_.service());
    queue_ = builder.AddCompletionQueue();
    context_.queue = queue_.get();
    server_ = builder.BuildAndStart();
    broker_.Listen();
    admin_.Listen();
    health_.Listen();
    reflection_.Listen();
    for (int i = 0; i < kQueueThreads; ++i) {
      threads_.emplace_back([this, i] { RunQueue(i); });
    }
  }

  ~GrpcServer() override { Shutdown("the daemon ends", absl::ZeroDuration()); }

  void Attach(SessionRegistry& sessions, ConnectionTable& connections) override {
    context_.sessions.store(&sessions, std::memory_order_release);
    context_.connections.store(&connections, std::memory_order_release);
  }

  void SetFacts(DaemonFacts facts) override { admin_.SetFacts(std::move(facts)); }

  void ServeFd(int fd) override { grpc::AddInsecureChannelFromFd(server_.get(), fd); }

  void SetServing(bool serving) override { health_.SetServing(serving); }

  bool Shutdown(const std::string& why, absl::Duration grace) override {
    if (std::exchange(down_, true)) return !stuck_;
    health_.SetServing(false);
    context_.calls.EndStreams(ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kStopping,
                                            absl::StrCat("ubd is stopping: ", why, "; connect again later")));
    // With no call open, what is left are last answers on their way, and connections of clients that sleep and so do
    // not even read that they should hang up.
    const MonoTime begun = context_.deps.clock.Now();
    context_.calls.WaitUntilNone(grace);
    const absl::Duration left = std::max(absl::ZeroDuration(), grace - (context_.deps.clock.Now() - begun));
    server_->Shutdown(absl::ToChronoTime(absl::Now() + std::min(left, kFarewell)));
    context_.calls.Close();
    queue_->Shutdown();
    for (std::thread& thread : threads_) thread.join();
    stuck_ = !broker_.StopWorkers(kWorkersGrace);
    return !stuck_;
  }

 private:
  void RunQueue(int number) {
    pthread_setname_np(pthread_self(), absl::StrCat("ubd-rpc-", number).c_str());
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) Call::Dispatch(tag, ok);
  }

  RpcContext context_;
  BrokerService broker_;
  AdminService admin_;
  HealthService health_;
  ReflectionService reflection_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
  bool down_ = false;
  bool stuck_ = false;
};

}  // namespace

std::unique_ptr<RpcServer> RpcServer::Create(RpcServerDeps deps) {
  return std::make_unique<GrpcServer>(std::move(deps));
}

}  // namespace ubd
