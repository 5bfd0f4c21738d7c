#include "client/src/broker_rpc.h"

#include <algorithm>
#include <utility>

#include "client/src/daemon_errors.h"
#include "client/src/rpc_channel.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

absl::Status BadAnswer(std::string_view what) {
  return MakeError(absl::StatusCode::kInternal, Reason::kBadField, what);
}

}  // namespace

BrokerRpc::BrokerRpc(std::shared_ptr<grpc::Channel> channel, std::string token)
    : channel_(std::move(channel)),
      token_(std::move(token)),
      broker_(v1::Broker::NewStub(channel_)),
      admin_(v1::Admin::NewStub(channel_)) {}

void BrokerRpc::Prepare(grpc::ClientContext& context) {
  context.AddMetadata("ub-token", token_);
  calls_.fetch_add(1, std::memory_order_relaxed);
}

template <class Request, class Response>
absl::Status BrokerRpc::Call(grpc::Status (v1::Broker::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                             const Request& request, Response* response, Deadline deadline) {
  grpc::ClientContext context;
  Prepare(context);
  SetDeadline(context, deadline);
  return FromGrpc((broker_.get()->*method)(&context, request, response), true);
}

absl::StatusOr<v1::Lease> BrokerRpc::Acquire(const v1::AcquireRequest& request, Deadline deadline) {
  v1::AcquireResponse response;
  absl::Status status = Call(&v1::Broker::Stub::Acquire, request, &response, deadline);
  if (!status.ok()) return status;
  return std::move(*response.mutable_lease());
}

absl::StatusOr<v1::Lease> BrokerRpc::Attach(const Ticket& ticket, Deadline deadline) {
  grpc::ClientContext context;
  Prepare(context);
  SetDeadline(context, deadline);
  v1::AttachRequest request;
  request.set_ticket(ticket.id().data(), ticket.id().size());
  v1::AttachResponse response;
  absl::Status status = FromGrpc(broker_->Attach(&context, request, &response), true);
  if (!status.ok()) return status;
  return std::move(*response.mutable_lease());
}

absl::StatusOr<Ticket> BrokerRpc::Share(LeaseId lease, const ShareOptions& options) {
  grpc::ClientContext context;
  Prepare(context);
  SetDeadline(context, Deadline::After(options.deadline));
  v1::ShareRequest request;
  request.set_lease(lease.value());
  request.set_access(options.access == Access::kReadWrite ? v1::READ_WRITE : v1::READ_ONLY);
  request.set_uid(options.uid.value());
  request.set_ticket_ttl_ms(static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Milliseconds(options.ticket_ttl), 0)));
  v1::ShareResponse response;
  absl::Status status = FromGrpc(broker_->Share(&context, request, &response), true);
  if (!status.ok()) return status;
  std::array<uint8_t, 16> id = {};
  if (response.ticket().size() != id.size()) return BadAnswer("the daemon made a ticket of the wrong size");
  std::copy(response.ticket().begin(), response.ticket().end(), id.begin());
  return Ticket(id);
}

absl::Status BrokerRpc::ReleaseBy(const v1::ReleaseRequest& request, Deadline deadline) {
  v1::ReleaseResponse response;
  return Call(&v1::Broker::Stub::Release, request, &response, deadline);
}

absl::Status BrokerRpc::Release(LeaseId lease, Deadline deadline) {
  v1::ReleaseRequest request;
  request.set_lease(lease.value());
  return ReleaseBy(request, deadline);
}

absl::Status BrokerRpc::ReleaseRequest(RequestId request_id, Deadline deadline) {
  v1::ReleaseRequest request;
  request.set_request_id(request_id.value());
  return ReleaseBy(request, deadline);
}

absl::Status BrokerRpc::Ping(Deadline deadline) {
  grpc::ClientContext context;
  Prepare(context);
  SetDeadline(context, deadline);
  v1::PingResponse response;
  return FromGrpc(broker_->Ping(&context, v1::PingRequest(), &response), true);
}

absl::StatusOr<std::set<LeaseId>> BrokerRpc::ListLeases(Deadline deadline) {
  grpc::ClientContext context;
  Prepare(context);
  SetDeadline(context, deadline);
  v1::LeaseList list;
  absl::Status status = FromGrpc(admin_->ListLeases(&context, v1::ListLeasesRequest(), &list), true);
  if (!status.ok()) return status;
  std::set<LeaseId> ids;
  for (const v1::LeaseInfo& lease : list.leases()) ids.insert(LeaseId(lease.id()));
  return ids;
}

absl::StatusOr<v1::OpenQueueResponse> BrokerRpc::OpenQueue(const v1::OpenQueueRequest& request, Deadline deadline) {
  v1::OpenQueueResponse response;
  absl::Status status = Call(&v1::Broker::Stub::OpenQueue, request, &response, deadline);
  if (!status.ok()) return status;
  return response;
}

absl::Status BrokerRpc::CloseQueue(uint32_t queue, Deadline deadline) {
  v1::CloseQueueRequest request;
  request.set_queue(queue);
  v1::CloseQueueResponse response;
  return Call(&v1::Broker::Stub::CloseQueue, request, &response, deadline);
}

absl::StatusOr<v1::OpenFileResponse> BrokerRpc::OpenFile(uint64_t offer, Deadline deadline) {
  v1::OpenFileRequest request;
  request.set_offer(offer);
  v1::OpenFileResponse response;
  absl::Status status = Call(&v1::Broker::Stub::OpenFile, request, &response, deadline);
  if (!status.ok()) return status;
  return response;
}

absl::Status BrokerRpc::CloseFile(uint32_t file, Deadline deadline) {
  v1::CloseFileRequest request;
  request.set_file(file);
  v1::CloseFileResponse response;
  return Call(&v1::Broker::Stub::CloseFile, request, &response, deadline);
}

absl::StatusOr<v1::Lease> BrokerRpc::RegisterMemory(const v1::RegisterMemoryRequest& request, Deadline deadline) {
  v1::RegisterMemoryResponse response;
  absl::Status status = Call(&v1::Broker::Stub::RegisterMemory, request, &response, deadline);
  if (!status.ok()) return status;
  return std::move(*response.mutable_lease());
}

std::unique_ptr<grpc::ClientReader<v1::Event>> BrokerRpc::Watch(grpc::ClientContext* context) {
  Prepare(*context);
  return broker_->Watch(context, v1::WatchRequest());
}

}  // namespace ub
