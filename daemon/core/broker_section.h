// The lock around one operation of the Broker. At its end those who can be served are, the lock goes, and then the
// callbacks run.
#ifndef UBD_CORE_BROKER_SECTION_H_
#define UBD_CORE_BROKER_SECTION_H_

#include <functional>
#include <utility>

#include "daemon/core/broker_state.h"
#include "proto/wire/mutex.h"

namespace ubd {

class ABSL_SCOPED_LOCKABLE BrokerSection {
 public:
  BrokerSection(ub::Mutex* mu, BrokerState* state) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu), state_(state) {
    mu_->Lock();
  }
  ~BrokerSection() ABSL_UNLOCK_FUNCTION() {
    std::function<void()> poke;
    if (state_->Settle()) poke = state_->poke;
    Outbox outbox = std::exchange(state_->data.outbox, Outbox());
    mu_->Unlock();
    if (poke) poke();
    outbox.Run();
  }
  BrokerSection(const BrokerSection&) = delete;
  BrokerSection& operator=(const BrokerSection&) = delete;

 private:
  ub::Mutex* mu_;
  BrokerState* state_;
};

}  // namespace ubd

#endif  // UBD_CORE_BROKER_SECTION_H_
