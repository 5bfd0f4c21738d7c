#include "daemon/rpc/health_service.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

using grpc::health::v1::HealthCheckResponse;

constexpr uint32_t kWatchesPerUid = 64;

bool Known(std::string_view service) {
  return service.empty() || service == "ub.v1.Broker" || service == "ub.v1.Admin";
}

HealthCheckResponse Response(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return response;
}

}  // namespace

// One watcher: the present state, then each change. States that came and went between two reads are skipped.
class HealthService::Source : public WatchCall::Source {
 public:
  Source(HealthService& health, bool known, CallLimiter::Place place, std::function<void()> poke)
      : health_(health), known_(known), place_(std::move(place)) {
    ub::MutexLock lock(&health_.mu_);
    id_ = health_.next_watch_++;
    health_.watches_.emplace(id_, std::move(poke));
  }
  ~Source() override {
    ub::MutexLock lock(&health_.mu_);
    health_.watches_.erase(id_);
  }

  std::optional<HealthCheckResponse> Next() override {
    HealthCheckResponse::ServingStatus now = HealthCheckResponse::SERVICE_UNKNOWN;
    if (known_) now = health_.serving() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
    if (last_ == now) return std::nullopt;
    last_ = now;
    return Response(now);
  }

 private:
  HealthService& health_;
  bool known_;
  CallLimiter::Place place_;
  uint64_t id_ = 0;
  std::optional<HealthCheckResponse::ServingStatus> last_;
};

void HealthService::Listen() {
  using S = grpc::health::v1::Health::AsyncService;
  ServeUnary(context_, service_, &S::RequestCheck, "Health.Check", [this](auto call) {
    if (!Known(call->request().service())) {
      return call->Fail(absl::NotFoundError("no such service; known are \"\", \"ub.v1.Broker\" and \"ub.v1.Admin\""));
    }
    call->Reply(Response(serving() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING));
  });
  ServeStream(context_, service_, &S::RequestWatch, [this](auto call) { Watch(call); });
}

void HealthService::Watch(const std::shared_ptr<WatchCall>& call) {
  CallLimiter::Place place =
      context_.limits.Take(absl::StrCat("health uid ", call->peer().uid.value()), kWatchesPerUid);
  if (place == nullptr) return call->EndStream(TooManyCalls(kWatchesPerUid));
  std::weak_ptr<WatchCall> weak = call;
  auto poke = [weak] {
    if (auto strong = weak.lock()) strong->Poke();
  };
  call->Start(std::make_unique<Source>(*this, Known(call->request().service()), std::move(place), poke));
}

void HealthService::SetServing(bool serving) {
  ub::MutexLock lock(&mu_);
  serving_ = serving;
  // Under the lock, so that no watch is poked after it has ended.
  for (const auto& [id, poke] : watches_) poke();
}

bool HealthService::serving() const {
  ub::MutexLock lock(&mu_);
  return serving_;
}

}  // namespace ubd
