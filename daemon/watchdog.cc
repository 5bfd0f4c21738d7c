#include "daemon/watchdog.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/telemetry/log.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

absl::StatusOr<ub::UniqueFd> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return absl::InvalidArgumentError("socket path too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  ub::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ub::ErrnoError(errno, "socket");
  // EAGAIN: the backlog is full, so the accept loop does not keep up; that is a failed check.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ub::ErrnoError(errno, absl::StrCat("connecting to ", path));
  }
  return fd;
}

// One check, from connect to answer. Used by the loop's thread until the call is started, then by the watchdog's
// thread.
struct OneCheck {
  std::unique_ptr<Health::Stub> stub;
  grpc::ClientContext context;
  HealthCheckResponse response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<HealthCheckResponse>> reader;
};

class GrpcWatchdog : public Watchdog {
 public:
  GrpcWatchdog(std::string path, absl::Duration deadline, std::function<void()> alive)
      : path_(std::move(path)), deadline_(deadline), alive_(std::move(alive)), thread_([this] { Run(); }) {}

  ~GrpcWatchdog() override {
    queue_.Shutdown();
    thread_.join();
  }

  void Check() override {
    if (busy_.exchange(true)) {
      LogWarn("watchdog: the last check of the RPC socket is still unanswered");
      return;
    }
    absl::StatusOr<ub::UniqueFd> fd = Connect(path_);
    if (!fd.ok()) {
      LogWarn("watchdog: the RPC socket cannot be reached", {{"error", std::string(fd.status().message())}});
      busy_.store(false);
      return;
    }
    auto check = std::make_unique<OneCheck>();
    check->stub = Health::NewStub(grpc::CreateInsecureChannelFromFd("ubd", fd->release()));
    check->context.set_deadline(absl::ToChronoTime(absl::Now() + deadline_));
    check->reader = check->stub->AsyncCheck(&check->context, HealthCheckRequest(), &queue_);
    OneCheck* raw = check.release();  // comes back as the tag
    raw->reader->Finish(&raw->response, &raw->status, raw);
  }

 private:
  void Run() {
    pthread_setname_np(pthread_self(), "ubd-watchdog");
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      std::unique_ptr<OneCheck> check(static_cast<OneCheck*>(tag));
      busy_.store(false);
      if (check->status.ok()) {
        alive_();
      } else {
        LogWarn("watchdog: the check of the RPC socket failed", {{"error", check->status.error_message()}});
      }
    }
  }

  std::string path_;
  absl::Duration deadline_;
  std::function<void()> alive_;
  std::atomic<bool> busy_ = false;
  grpc::CompletionQueue queue_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

std::unique_ptr<Watchdog> Watchdog::Create(std::string socket_path, absl::Duration deadline,
                                           std::function<void()> alive) {
  return std::make_unique<GrpcWatchdog>(std::move(socket_path), deadline, std::move(alive));
}

}  // namespace ubd
