// ub.v1.Admin: listings and orders of operators. No token; the kernel's word on the connection's user decides what is
// shown and allowed.
#ifndef UBD_RPC_ADMIN_SERVICE_H_
#define UBD_RPC_ADMIN_SERVICE_H_

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/context.h"
#include "daemon/rpc/stream_call.h"
#include "daemon/rpc/unary_call.h"
#include "proto/wire/mutex.h"
#include "ub/v1/admin.grpc.pb.h"

namespace ubd {

class AdminService {
 public:
  explicit AdminService(RpcContext& context) : context_(context) {}

  grpc::Service& service() { return service_; }
  // Asks for the first call of each method; after the server has started.
  void Listen();
  void SetFacts(DaemonFacts facts) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  template <class Req, class Rep>
  using CallPtr = std::shared_ptr<UnaryCall<Req, Rep>>;

  // Long answers that one user has asked for and not yet read.
  static constexpr uint32_t kListingsPerUid = 16;
  // False: the caller has too many listings under way, and was told.
  template <class Call>
  bool MayList(const Call& call) {
    CallLimiter::Place place =
        context_.limits.Take(absl::StrCat("listings uid ", call->peer().uid.value()), kListingsPerUid);
    if (place == nullptr) {
      call->Fail(TooManyCalls(kListingsPerUid));
      return false;
    }
    call->Hold(std::move(place));
    return true;
  }

  // admin_data.cc
  void ListenData();
  void ListQueues(const CallPtr<ub::v1::ListQueuesRequest, ub::v1::QueueList>& call);
  void SetPath(const CallPtr<ub::v1::SetPathRequest, ub::v1::PathStatus>& call);

  ub::v1::Status GetStatus(const RpcPeer& peer);
  ub::v1::PoolList ListPools();
  void ListBlocks(const CallPtr<ub::v1::ListBlocksRequest, ub::v1::BlockList>& call);
  void ListLeases(const CallPtr<ub::v1::ListLeasesRequest, ub::v1::LeaseList>& call);
  void ListSessions(const CallPtr<ub::v1::ListSessionsRequest, ub::v1::SessionList>& call);
  void WatchAll(const std::shared_ptr<StreamCall<ub::v1::WatchAllRequest, ub::v1::Event>>& call);
  void RevokeLease(const CallPtr<ub::v1::RevokeLeaseRequest, ub::v1::RevokeLeaseResponse>& call);
  void SetDrain(const CallPtr<ub::v1::SetDrainRequest, ub::v1::SetDrainResponse>& call);

  RpcContext& context_;
  ub::v1::Admin::AsyncService service_;
  ub::Mutex mu_;
  DaemonFacts facts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace ubd

#endif  // UBD_RPC_ADMIN_SERVICE_H_
