// A client of a scripted daemon.
#ifndef UBD_TESTS_UNIT_CLIENT_CLIENT_FIXTURE_H_
#define UBD_TESTS_UNIT_CLIENT_CLIENT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "proto/wire/error.h"
#include "tests/unit/client/fake_daemon.h"
#include "ub/client.h"
#include "ub/slot_pool.h"

namespace ub {

using testing::ElementsAre;
using testing::IsEmpty;

class ClientTest : public testing::Test {
 protected:
  void SetUp() override { client_ = Connect(); }
  std::unique_ptr<Client> Connect(Bytes cache_limit = Bytes(UINT64_MAX)) {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect({.runtime_dir = daemon_.dir(), .cache_limit = cache_limit});
    if (!client.ok()) ADD_FAILURE() << client.status();
    daemon_.AwaitWatchers(1);
    (*client)->OnEvent([this](const Event& event) {
      MutexLock lock(&mu_);
      events_.push_back(event);
      changed_.SignalAll();
    });
    return *std::move(client);
  }
  Lease Get(AcquireOptions options = {.bytes = MiB(2)}) {
    absl::StatusOr<Lease> lease = client_->Acquire(options);
    if (!lease.ok()) {
      ADD_FAILURE() << lease.status();
      return Lease();
    }
    return *std::move(lease);
  }
  // Blocks until the callback has seen `count` events.
  std::vector<Event> AwaitEvents(size_t count) {
    MutexLock lock(&mu_);
    while (events_.size() < count) {
      if (changed_.WaitWithTimeout(&mu_, absl::Seconds(10))) ADD_FAILURE() << "no event came";
    }
    return events_;
  }
  FakeDaemon::Script Refuse(grpc::StatusCode code, const std::string& reason) {
    return {.acquire = FakeDaemon::Refusal(code, reason, "text of the daemon")};
  }

  FakeDaemon daemon_;
  Mutex mu_;
  CondVar changed_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Client> client_;
};

}  // namespace ub

#endif  // UBD_TESTS_UNIT_CLIENT_CLIENT_FIXTURE_H_
