// The standard health protocol (grpc.health.v1) over the daemon's own server form, so that stock probes work and a
// stream of it costs no thread. The services are "", "ub.v1.Broker" and "ub.v1.Admin"; all have one state. Thread-safe.
#ifndef UBD_RPC_HEALTH_SERVICE_H_
#define UBD_RPC_HEALTH_SERVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/rpc/context.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "proto/wire/mutex.h"

namespace ubd {

class HealthService {
 public:
  explicit HealthService(RpcContext& context) : context_(context) {}

  grpc::Service& service() { return service_; }
  // Asks for the first call of each method; after the server has started.
  void Listen();
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(mu_);
  bool serving() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using WatchCall = StreamCall<grpc::health::v1::HealthCheckRequest, grpc::health::v1::HealthCheckResponse>;
  class Source;

  void Watch(const std::shared_ptr<WatchCall>& call);

  RpcContext& context_;
  grpc::health::v1::Health::AsyncService service_;
  mutable ub::Mutex mu_;
  bool serving_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_watch_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::function<void()>> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_RPC_HEALTH_SERVICE_H_
