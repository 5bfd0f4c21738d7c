// Many clients that take and drop without pause, killed at once while an operator revokes the same leases: each lease
// ends once, sums hold throughout, and nobody who asks twice frees the next tenant's lease.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/crash/crash_fixture.h"
#include "tests/integration/harness/raw_client.h"

namespace ubd::testing {
namespace {

constexpr int kClients = 64;
// How often the operator must have won the race. Each client holds some of its leases for a moment, so that it can.
constexpr uint64_t kRevokes = 20;

class KillAll : public CrashTest {
 protected:
  // Revokes whatever is leased, until told to stop.
  void RevokeAll(const std::atomic<bool>& stop) {
    while (!stop) {
      const ub::v1::LeaseList list = watch_->Leases();
      for (const auto& lease : list.leases()) {
        ub::v1::RevokeLeaseRequest request;
        request.set_lease(lease.id());
        ub::v1::RevokeLeaseResponse response;
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        grpc::Status status = watch_->admin().RevokeLease(&context, request, &response);
        if (status.ok()) ++revoked_;
        bool raced = status.error_code() == grpc::StatusCode::NOT_FOUND;
        if (!status.ok() && !raced) ADD_FAILURE() << "revoke: " << status.error_message();
      }
      watch_->Pools();
    }
  }
  std::atomic<uint64_t> revoked_{0};
};

TEST_F(KillAll, WhileAnOperatorRevokesFreesEachLeaseOnce) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/16, /*open_to_all=*/false));
  std::vector<std::unique_ptr<Process>> holders;
  for (int i = 0; i < kClients; ++i) holders.push_back(Holder("loop", kBlockBytes));
  for (auto& holder : holders) ASSERT_NO_FATAL_FAILURE(ExpectLine(*holder, "looping"));
  std::atomic<bool> stop{false};
  std::thread revoker([&] { RevokeAll(stop); });
  // Every client has had its turn many times over by then.
  absl::Status busy = watch_->WaitUntil(
      [&] { return watch_->Count(ub::v1::Event::GRANTED) >= 10 * kClients && revoked_ >= kRevokes; }, kBound);
  for (auto& holder : holders) holder->Signal(SIGKILL);
  std::vector<ExitCode> codes;
  for (auto& holder : holders) codes.push_back(holder->Wait(kBound).value_or(-1));
  stop = true;
  revoker.join();
  ASSERT_TRUE(busy.ok()) << busy;
  EXPECT_EQ(codes, std::vector<ExitCode>(kClients, -SIGKILL)) << "a client found something wrong before it was killed";
  absl::Status clean = watch_->WaitUntilAllFree(kBound);
  ASSERT_TRUE(clean.ok()) << clean;
  EXPECT_EQ(watch_->broken_sums(), "");
  ub::v1::Status status = watch_->Status();
  EXPECT_EQ(status.sessions(), 0u);
  EXPECT_EQ(status.waiters(), 0u);
  EXPECT_LE(status.reclaimed_leases(), static_cast<uint64_t>(kClients));
  EXPECT_EQ(*daemon_->Stop(), 0);
}

TEST_F(KillAll, SecondDropOfALeaseNeverFreesTheNextTenant) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon(/*reserve=*/8, /*open_to_all=*/false));
  auto first = RawClient::Connect(daemon_->runtime_dir());
  auto second = RawClient::Connect(daemon_->runtime_dir());
  ASSERT_TRUE(first.ok() && second.ok());
  auto old = (*first)->Acquire(kPoolBytes, 1);
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_TRUE((*first)->ReadGrant().ok());
  EXPECT_TRUE((*first)->Release(old->id()).ok());
  EXPECT_EQ((*first)->Release(old->id()).error_code(), grpc::StatusCode::NOT_FOUND);
  auto next = (*second)->Acquire(kPoolBytes, 1, absl::Seconds(30));
  ASSERT_TRUE(next.ok()) << next.status();
  for (uint64_t id : {old->id(), next->id(), next->id() + 1}) {
    EXPECT_EQ((*first)->Release(id).error_code(), grpc::StatusCode::NOT_FOUND) << id;
  }
  ASSERT_EQ(watch_->Leases().leases_size(), 1);
  EXPECT_EQ(watch_->Leases().leases(0).id(), next->id());
  EXPECT_TRUE((*second)->Release(next->id()).ok());
}

}  // namespace
}  // namespace ubd::testing
