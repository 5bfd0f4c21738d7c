// ub.v1.Broker: check, translate, call, translate back. The rules are the Broker's; what is here is what a remote
// caller adds: it may go away in the middle, and the memory travels on another socket.
#ifndef UBD_RPC_BROKER_SERVICE_H_
#define UBD_RPC_BROKER_SERVICE_H_

#include <memory>
#include <vector>

#include "daemon/rpc/context.h"
#include "daemon/rpc/data_calls.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "ub/v1/broker.grpc.pb.h"

namespace ubd {

class BrokerService {
 public:
  explicit BrokerService(RpcContext& context);

  grpc::Service& service() { return service_; }
  // Asks for the first call of each method; after the server has started.
  void Listen();
  // DataCalls::Stop.
  bool StopWorkers(absl::Duration grace) { return data_.Stop(grace); }

 private:
  template <class Req, class Rep>
  using CallPtr = std::shared_ptr<UnaryCall<Req, Rep>>;
  using AcquireCall = CallPtr<ub::v1::AcquireRequest, ub::v1::AcquireResponse>;
  using AttachCall = CallPtr<ub::v1::AttachRequest, ub::v1::AttachResponse>;

  void Acquire(const AcquireCall& call);
  void Release(const CallPtr<ub::v1::ReleaseRequest, ub::v1::ReleaseResponse>& call);
  void Share(const CallPtr<ub::v1::ShareRequest, ub::v1::ShareResponse>& call);
  void Attach(const AttachCall& call);
  void Ping(const CallPtr<ub::v1::PingRequest, ub::v1::PingResponse>& call);
  void Watch(const std::shared_ptr<StreamCall<ub::v1::WatchRequest, ub::v1::Event>>& call);

  // Sends the fds of `grant` and answers after the first batch.
  template <class Call>
  void Deliver(const Call& call, const std::shared_ptr<Session>& session, const Grant& grant);
  ub::v1::Lease LeaseOf(const Grant& grant) const;

  struct PoolFact {
    std::string name;
    Bytes page_size;
  };

  RpcContext& context_;
  std::vector<PoolFact> pools_;  // by PoolId
  ub::v1::Broker::AsyncService service_;
  DataCalls data_;
};

}  // namespace ubd

#endif  // UBD_RPC_BROKER_SERVICE_H_
