// The public Client: asks whether it is in the process that connected, then leaves everything to the Session.
#include <utility>

#include "client/src/fork_guard.h"
#include "client/src/session.h"
#include "ub/client.h"

namespace ub {
namespace {

class ClientImpl final : public Client {
 public:
  explicit ClientImpl(std::unique_ptr<Session> session) : session_(std::move(session)), id_(session_->id()) {}
  ~ClientImpl() override {
    // In a forked child everything behind it is the parent's; see fork_guard.h.
    if (guard_.forked()) (void)session_.release();
  }

  absl::StatusOr<Lease> Acquire(const AcquireOptions& options) override {
    if (guard_.forked()) return guard_.Check();
    return session_->Acquire(options);
  }
  absl::StatusOr<Lease> Attach(const Ticket& ticket, absl::Duration deadline) override {
    if (guard_.forked()) return guard_.Check();
    return session_->Attach(ticket, Deadline::After(deadline));
  }
  absl::StatusOr<Lease> Register(int fd, const RegisterOptions& options) override {
    if (guard_.forked()) return guard_.Check();
    return session_->Register(fd, options);
  }
  absl::Status Ping(absl::Duration deadline) override {
    if (guard_.forked()) return guard_.Check();
    return session_->Ping(Deadline::After(deadline));
  }
  absl::Status DropCache() override {
    if (guard_.forked()) return guard_.Check();
    return session_->DropCache(Deadline::After(absl::Seconds(5)));
  }
  void OnEvent(EventCallback callback) override {
    if (!guard_.forked()) session_->OnEvent(std::move(callback));
  }
  SessionId session() const override { return id_; }
  ClientStats stats() const override { return guard_.forked() ? ClientStats() : session_->stats(); }

 private:
  absl::StatusOr<TransferHost*> Transfers() override {
    if (guard_.forked()) return guard_.Check();
    return &session_->transfers();
  }

  std::unique_ptr<Session> session_;
  const SessionId id_;
  const ForkGuard guard_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ConnectOptions& options) {
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) return session.status();
  return std::make_unique<ClientImpl>(*std::move(session));
}

}  // namespace ub
