// The RPCs of one session: token, deadline and translation, nothing else. Thread-safe. Every call has a deadline; a
// daemon that does not answer by then is UNAVAILABLE/NOT_ANSWERING, a connection that broke UNAVAILABLE/SESSION_ENDED.
#ifndef UB_SRC_BROKER_RPC_H_
#define UB_SRC_BROKER_RPC_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/mono_time.h"
#include "ub/lease.h"
#include "ub/units.h"
#include "ub/v1/admin.grpc.pb.h"
#include "ub/v1/broker.grpc.pb.h"

namespace ub {

class BrokerRpc {
 public:
  BrokerRpc(std::shared_ptr<grpc::Channel> channel, std::string token);

  absl::StatusOr<v1::Lease> Acquire(const v1::AcquireRequest& request, Deadline deadline);
  absl::StatusOr<v1::Lease> Attach(const Ticket& ticket, Deadline deadline);
  absl::StatusOr<Ticket> Share(LeaseId lease, const ShareOptions& options);
  absl::Status Release(LeaseId lease, Deadline deadline);
  // For an Acquire that was given up: ends whatever it may have become.
  absl::Status ReleaseRequest(RequestId request, Deadline deadline);
  absl::Status Ping(Deadline deadline);
  absl::StatusOr<v1::OpenQueueResponse> OpenQueue(const v1::OpenQueueRequest& request, Deadline deadline);
  absl::Status CloseQueue(uint32_t queue, Deadline deadline);
  absl::StatusOr<v1::OpenFileResponse> OpenFile(uint64_t offer, Deadline deadline);
  absl::Status CloseFile(uint32_t file, Deadline deadline);
  absl::StatusOr<v1::Lease> RegisterMemory(const v1::RegisterMemoryRequest& request, Deadline deadline);
  // Ids of all leases of this uid that the daemon knows.
  absl::StatusOr<std::set<LeaseId>> ListLeases(Deadline deadline);
  // The event stream; `context` must be fresh and outlive the reader. Has no deadline: cancel the context.
  std::unique_ptr<grpc::ClientReader<v1::Event>> Watch(grpc::ClientContext* context);

  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  // A context for one call, counted.
  void Prepare(grpc::ClientContext& context);
  absl::Status ReleaseBy(const v1::ReleaseRequest& request, Deadline deadline);
  // One call from start to end.
  template <class Request, class Response>
  absl::Status Call(grpc::Status (v1::Broker::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response, Deadline deadline);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string token_;
  const std::unique_ptr<v1::Broker::Stub> broker_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  std::atomic<uint64_t> calls_{0};
};

}  // namespace ub

#endif  // UB_SRC_BROKER_RPC_H_
