#include "tests/integration/harness/raw_client.h"

#include <errno.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "proto/wire/error.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/runtime_dir.h"
#include "tests/integration/harness/process.h"

namespace ubd::testing {

absl::StatusOr<ub::UniqueFd> ConnectRaw(const std::string& runtime_dir, std::string_view name, int type) {
  std::string path = runtime_dir + "/" + std::string(name);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return absl::InvalidArgumentError("socket path too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  ub::UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return ub::ErrnoError(errno, "connecting to " + path);
  }
  return fd;
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> RawChannel(const std::string& runtime_dir) {
  auto fd = ConnectRaw(runtime_dir, ub::kRpcSocketName, SOCK_STREAM);
  if (!fd.ok()) return fd.status();
  if (fcntl(fd->get(), F_SETFL, O_NONBLOCK) != 0) return ub::ErrnoError(errno, "F_SETFL");
  return grpc::CreateInsecureChannelFromFd("ubd", fd->release());
}

absl::StatusOr<std::unique_ptr<RawClient>> RawClient::Connect(const std::string& runtime_dir, std::string_view name) {
  auto lifeline = ConnectRaw(runtime_dir, ub::kLifelineSocketName, SOCK_SEQPACKET);
  if (!lifeline.ok()) return lifeline.status();
  auto hello = ub::wire::NewFrame<ub::wire::Hello>();
  hello.pid = getpid();
  ub::wire::SetText(hello.name, name);
  if (auto sent = ub::wire::SendPacket(lifeline->get(), ub::wire::AsBytes(hello), {}); !sent.ok()) return sent;
  if (!WaitReadable(lifeline->get(), absl::Seconds(30))) return absl::DeadlineExceededError("no Welcome");
  auto packet = ub::wire::ReceivePacket(lifeline->get());
  if (!packet.ok()) return packet.status();
  auto frame = ub::wire::ParseFrame(packet->bytes);
  if (!frame.ok()) return frame.status();
  if (const auto* refuse = std::get_if<ub::wire::Refuse>(&*frame)) {
    return absl::Status(static_cast<absl::StatusCode>(refuse->code), ub::wire::GetText(refuse->text));
  }
  const auto* welcome = std::get_if<ub::wire::Welcome>(&*frame);
  if (welcome == nullptr || packet->fds.size() != 1) return absl::InternalError("expected a Welcome with one fd");
  auto channel = RawChannel(runtime_dir);
  if (!channel.ok()) return channel.status();
  std::unique_ptr<RawClient> client(new RawClient());
  client->lifeline_ = *std::move(lifeline);
  client->page_ = std::move(packet->fds[0]);
  client->welcome_ = *welcome;
  client->channel_ = *channel;
  client->broker_ = ub::v1::Broker::NewStub(*channel);
  client->admin_ = ub::v1::Admin::NewStub(*channel);
  return client;
}

std::unique_ptr<grpc::ClientContext> RawClient::Context(absl::Duration limit) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(limit));
  absl::string_view token(reinterpret_cast<const char*>(welcome_.token.data()), welcome_.token.size());
  context->AddMetadata("ub-token", absl::BytesToHexString(token));
  return context;
}

absl::StatusOr<ub::v1::Lease> RawClient::Acquire(uint64_t bytes, uint64_t request, absl::Duration wait,
                                                 bool cacheable) {
  ub::v1::AcquireRequest message;
  message.set_bytes(bytes);
  message.set_request_id(request);
  if (wait > absl::ZeroDuration()) message.set_wait_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(wait)));
  message.set_cacheable(cacheable);
  ub::v1::AcquireResponse response;
  grpc::Status status = broker_->Acquire(Context(wait + absl::Seconds(30)).get(), message, &response);
  if (!status.ok()) return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  return response.lease();
}

absl::StatusOr<RawGrant> RawClient::ReadGrant(absl::Duration limit) {
  absl::Time end = absl::Now() + limit;
  RawGrant grant = {};
  do {
    if (!WaitReadable(lifeline_.get(), end - absl::Now())) return absl::DeadlineExceededError("no Grant frame");
    auto packet = ub::wire::ReceivePacket(lifeline_.get());
    if (!packet.ok()) return packet.status();
    if (packet->bytes.empty()) return absl::UnavailableError("the daemon hung up");
    auto frame = ub::wire::ParseFrame(packet->bytes);
    if (!frame.ok()) return frame.status();
    if (const auto* failed = std::get_if<ub::wire::GrantFailed>(&*frame)) {
      return absl::Status(static_cast<absl::StatusCode>(failed->code), ub::wire::GetText(failed->text));
    }
    const auto* part = std::get_if<ub::wire::Grant>(&*frame);
    if (part == nullptr || part->count != packet->fds.size() || part->first != grant.fds.size()) {
      return absl::InternalError("a frame that is not the next Grant");
    }
    grant.frame = *part;
    for (ub::UniqueFd& fd : packet->fds) grant.fds.push_back(std::move(fd));
  } while (grant.fds.size() < grant.frame.total);
  return grant;
}

grpc::Status RawClient::Release(uint64_t lease) {
  ub::v1::ReleaseRequest request;
  request.set_lease(lease);
  ub::v1::ReleaseResponse response;
  return broker_->Release(Context().get(), request, &response);
}

}  // namespace ubd::testing
