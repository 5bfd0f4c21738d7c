#include "daemon/telemetry/metrics.h"

#include <prometheus/exposer.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "daemon/telemetry/listen_address.h"
#include "daemon/telemetry/metric_families.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"

namespace ubd {
namespace {

using prometheus::Family;
using prometheus::Histogram;

const Histogram::BucketBoundaries& WaitBuckets() {
  static const auto* buckets = new Histogram::BucketBoundaries{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600};
  return *buckets;
}
const Histogram::BucketBoundaries& RpcBuckets() {
  static const auto* buckets =
      new Histogram::BucketBoundaries{5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5, 1, 5, 30};
  return *buckets;
}

const sockaddr* AsSockaddr(const ListenAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.socket_address);
}

class NoMetrics : public Metrics {
 public:
  void ObserveRpc(std::string_view, std::string_view, absl::Duration) override {}
  void OnEvent(const WatchedEvent&) override {}
};

class ServedMetrics : public Metrics {
 public:
  ServedMetrics(ListenAddress address, std::unique_ptr<prometheus::Exposer> exposer, MetricsSources sources)
      : address_(std::move(address)),
        collector_(std::make_shared<SourceCollector>(std::move(sources))),
        registry_(std::make_shared<prometheus::Registry>()),
        rpc_(prometheus::BuildHistogram().Name("ubd_rpc_seconds").Help("Time to serve an RPC.").Register(*registry_)),
        wait_(prometheus::BuildHistogram()
                  .Name("ubd_acquire_wait_seconds")
                  .Help("Time from a request for memory to its grant.")
                  .Register(*registry_)
                  .Add({}, WaitBuckets())),
        exposer_(std::move(exposer)) {
    exposer_->RegisterCollectable(collector_);
    exposer_->RegisterCollectable(registry_);
  }

  // The web server looks for the end only when a connection comes, or every 2 s. So knock until it has seen it: the end
  // of the daemon should not wait.
  ~ServedMetrics() override {
    absl::Notification ended;
    std::thread ending([&] {
      exposer_.reset();
      ended.Notify();
    });
    do {
      ub::UniqueFd knock(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)connect(knock.get(), AsSockaddr(address_), sizeof(address_.socket_address));
    } while (!ended.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
    ending.join();
  }

  void ObserveRpc(std::string_view method, std::string_view code, absl::Duration latency) override {
    rpc_.Add({{"method", std::string(method)}, {"code", std::string(code)}}, RpcBuckets())
        .Observe(absl::ToDoubleSeconds(latency));
  }

  void OnEvent(const WatchedEvent& event) override {
    EventCounts& counts = collector_->counts;
    switch (event.event.kind) {
      case EventKind::kGranted:
        ++counts.granted;
        return wait_.Observe(absl::ToDoubleSeconds(event.event.waited));
      case EventKind::kRecycled:
        ++counts.recycled;
        return;
      case EventKind::kTampered:
        ++counts.tampered;
        return;
      case EventKind::kRevoked:
        ++counts.revoked;
        return;
      case EventKind::kExpired:
        ++counts.expired;
        return;
      case EventKind::kShared:
        ++counts.shared;
        return;
      default:
        return;
    }
  }

 private:
  const ListenAddress address_;
  std::shared_ptr<SourceCollector> collector_;
  std::shared_ptr<prometheus::Registry> registry_;
  Family<Histogram>& rpc_;
  Histogram& wait_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

// The exposer tells of a failure only that there was one; the kernel says which.
absl::Status CheckFree(const ListenAddress& address) {
  ub::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int on = 1;
  if (fd.valid() && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(fd.get(), AsSockaddr(address), sizeof(address.socket_address)) == 0 && listen(fd.get(), 1) == 0) {
    return absl::OkStatus();
  }
  absl::Status status = ub::ErrnoError(errno, absl::StrCat("listening on ", address.text, " for metrics"));
  return ub::MakeError(status.code(), ub::Reason::kKernelRefused,
                       absl::StrCat(std::string(status.message()), "; set metrics.listen to a free port, or remove it"),
                       ub::DetailsOf(status));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Create(const std::string& listen, MetricsSources sources) {
  if (listen.empty()) return std::make_unique<NoMetrics>();
  absl::StatusOr<ListenAddress> address = ParseListenAddress(listen);
  if (!address.ok()) return address.status();
  if (absl::Status status = CheckFree(*address); !status.ok()) return status;
  // Short time-outs and no keep-alive: whoever connects and stays silent holds one of two threads.
  std::vector<std::string> options = {"listening_ports",    listen, "num_threads",       "2",
                                      "request_timeout_ms", "1000", "enable_keep_alive", "no"};
  try {
    return std::make_unique<ServedMetrics>(*address, std::make_unique<prometheus::Exposer>(std::move(options)),
                                           std::move(sources));
  } catch (const std::exception& error) {
    return ub::MakeError(absl::StatusCode::kUnavailable, ub::Reason::kKernelRefused,
                         absl::StrCat("serving metrics on ", listen, ": ", error.what()));
  }
}

}  // namespace ubd
