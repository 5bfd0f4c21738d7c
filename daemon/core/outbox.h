// Answers to be given once the Broker's lock is free. Filled under the lock, emptied without it.
#ifndef UBD_CORE_OUTBOX_H_
#define UBD_CORE_OUTBOX_H_

#include <utility>
#include <vector>

#include "daemon/core/requests.h"

namespace ubd {

class Outbox {
 public:
  void Add(GrantCallback done, absl::StatusOr<Grant> answer) {
    answers_.emplace_back(std::move(done), std::move(answer));
  }
  // In the order of Add. Each callback is run once.
  void Run() {
    for (auto& [done, answer] : answers_) done(std::move(answer));
    answers_.clear();
  }

 private:
  std::vector<std::pair<GrantCallback, absl::StatusOr<Grant>>> answers_;
};

}  // namespace ubd

#endif  // UBD_CORE_OUTBOX_H_
