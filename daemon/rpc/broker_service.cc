#include "daemon/rpc/broker_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/translate.h"
#include "daemon/rpc/validators.h"
#include "daemon/rpc/watch.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// A client needs one; a few more let a new one start before the old one has ended.
constexpr uint32_t kWatchesPerSession = 4;

absl::Status SessionEnded() {
  return ub::MakeError(absl::StatusCode::kAborted, ub::Reason::kSessionEnded,
                       "the session has ended, its leases with it: connect anew");
}

}  // namespace

BrokerService::BrokerService(RpcContext& context) : context_(context) {
  for (const PoolFacts& facts : context.deps.memory.Facts()) pools_.push_back({facts.spec.name, facts.page_size});
}

void BrokerService::Listen() {
  using S = ub::v1::Broker::AsyncService;
  using namespace ub::v1;  // NOLINT: names of messages only
  ServeUnary<S, S::WithAsyncMethodHolder>
}

}  // namespace ubd
