#include "client/ubctl/demo/consumer.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ubctl/demo/hash.h"
#include "client/ubctl/demo/message.h"
#include "ub/client.h"

namespace ub::ctl {
namespace {

class Consumer {
 public:
  Consumer(std::unique_ptr<Client> client, int socket, absl::Duration timeout)
      : client_(std::move(client)), socket_(socket), timeout_(timeout) {}

  // Ok: the producer got the result.
  absl::Status Serve() {
    while (true) {
      auto message = ReceiveMessage(socket_);
      if (!message.ok()) return message.status();
      if (message->kind == DemoKind::kEnd) return SendResult();
      if (absl::Status status = Hash(*message); !status.ok()) return status;
      DemoMessage done;
      done.kind = DemoKind::kDone;
      done.sequence = message->sequence;
      if (absl::Status status = SendMessage(socket_, done); !status.ok()) return status;
    }
  }

 private:
  absl::Status Hash(const DemoMessage& chunk) {
    auto lease = client_->Attach(Ticket(chunk.ticket), timeout_);
    if (!lease.ok()) return lease.status();
    ++attaches_;
    advisory_ = advisory_ || lease->read_only_advisory();
    if (lease->access() != Access::kReadOnly) return absl::InternalError("the share is not read-only");
    if (lease->size() < chunk.bytes) {
      return absl::InternalError(absl::StrCat("the share has ", lease->size(), " bytes, the chunk ", chunk.bytes));
    }
    hash_.Add(lease->data(), chunk.bytes);
    if (!lease->alive())
      return MakeError(absl::StatusCode::kAborted, Reason::kRevoked, "the lease ended while its bytes were hashed");
    return lease->Release();
  }

  absl::Status SendResult() {
    DemoMessage result;
    result.kind = DemoKind::kResult;
    result.hash = hash_.Value();
    result.rpcs = client_->stats().rpcs;
    result.attaches = attaches_;
    result.advisory = advisory_;
    return SendMessage(socket_, result);
  }

  std::unique_ptr<Client> client_;
  int socket_;
  absl::Duration timeout_;
  class Hash hash_;
  uint64_t attaches_ = 0;
  bool advisory_ = false;
};

absl::Status Run(const Context& context, int socket) {
  ConnectOptions options;
  options.runtime_dir = context.runtime_dir;
  options.deadline = context.timeout;
  options.name = "ubctl-demo-consumer";
  auto client = Client::Connect(options);
  if (!client.ok()) return client.status();
  return Consumer(*std::move(client), socket, context.timeout).Serve();
}

}  // namespace

ExitCode ServeProducer(const Context& context, int socket) {
  absl::Status status = Run(context, socket);
  if (status.ok()) return ExitCode::kOk;
  (void)SendMessage(socket, FailureMessage(status));  // fails when the producer is gone, and then nobody wants to know
  return ExitCodeFor(status);
}

}  // namespace ub::ctl
