// The standard reflection service on the daemon's own completion queue. gRPC's ready-made one takes a thread for each
// open stream, which a few callers that never end theirs could use up for everybody; here a stream costs a few buffers,
// and each uid may have a few streams.
#ifndef UBD_RPC_REFLECTION_SERVICE_H_
#define UBD_RPC_REFLECTION_SERVICE_H_

#include "daemon/rpc/context.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace ubd {

class ReflectionService {
 public:
  explicit ReflectionService(RpcContext& context) : context_(context) {}

  grpc::Service& service() { return service_; }
  // Asks for the first call; after the server has started.
  void Listen();

 private:
  RpcContext& context_;
  grpc::reflection::v1alpha::ServerReflection::AsyncService service_;
};

}  // namespace ubd

#endif  // UBD_RPC_REFLECTION_SERVICE_H_
