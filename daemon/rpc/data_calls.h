// The calls of ub.v1.Broker that open and close queues, files and memory of the client's own. What arrives in an Offer
// frame may block whoever touches it, so files and memory are handled by FileWorkers; the call is answered when that is
// done, or ends with its deadline, and then what was opened is closed again.
#ifndef UBD_RPC_DATA_CALLS_H_
#define UBD_RPC_DATA_CALLS_H_

#include <memory>

#include "daemon/rpc/context.h"
#include "daemon/rpc/file_workers.h"
#include "daemon/rpc/unary_call.h"
#include "ub/v1/broker.grpc.pb.h"

namespace ubd {

class DataCalls {
 public:
  explicit DataCalls(RpcContext& context) : context_(context) {}

  // Asks for the first call of each of its methods.
  void Listen(ub::v1::Broker::AsyncService& service);
  // False: a worker is stuck (FileWorkers::Stop).
  bool Stop(absl::Duration grace) { return workers_.Stop(grace); }

 private:
  template <class Req, class Rep>
  using CallPtr = std::shared_ptr<UnaryCall<Req, Rep>>;
  using OpenQueueCall = CallPtr<ub::v1::OpenQueueRequest, ub::v1::OpenQueueResponse>;
  using OpenFileCall = CallPtr<ub::v1::OpenFileRequest, ub::v1::OpenFileResponse>;
  using RegisterCall = CallPtr<ub::v1::RegisterMemoryRequest, ub::v1::RegisterMemoryResponse>;

  void OpenQueue(const OpenQueueCall& call);
  void CloseQueue(const CallPtr<ub::v1::CloseQueueRequest, ub::v1::CloseQueueResponse>& call);
  void OpenFile(const OpenFileCall& call);
  void CloseFile(const CallPtr<ub::v1::CloseFileRequest, ub::v1::CloseFileResponse>& call);
  void RegisterMemory(const RegisterCall& call);

  // The offer could not be taken.
  void Refused(const OpenFileCall& call, const absl::Status& why);
  void Refused(const RegisterCall& call, const absl::Status& why);
  // Takes the offer, then runs `work` with it on a worker; fails the call where that cannot be.
  template <class Call, class Work>
  void WithOffer(const Call& call, Session& session, uint64_t offer, Work work);

  RpcContext& context_;
  FileWorkers workers_;
};

}  // namespace ubd

#endif  // UBD_RPC_DATA_CALLS_H_
