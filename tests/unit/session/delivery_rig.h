// What the tests of deliveries share.
#ifndef UBD_TESTS_UNIT_SESSION_DELIVERY_RIG_H_
#define UBD_TESTS_UNIT_SESSION_DELIVERY_RIG_H_

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "tests/unit/session/harness.h"

namespace ubd::testing {

// In, and with nothing in flight: the Welcome's fd was counted as taken.
absl::StatusOr<RawClient> JoinSettled(TestDaemon& daemon);

// Reads the frames of one grant and checks that each fd is the right block's, in order. The number of frames.
size_t ReadGrant(TestDaemon& daemon, const RawClient& client, const Grant& grant);

// Asks for leases without waiting, and counts the answers.
struct Flood {
  std::shared_ptr<std::atomic<int>> ok = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> failed = std::make_shared<std::atomic<int>>(0);
  void Ask(TestDaemon& daemon, SessionId session, int times, uint32_t blocks = 1);
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_SESSION_DELIVERY_RIG_H_
