// An operator's view of a daemon under test: waits on Admin.WatchAll's events until the pools are as they should be,
// and checks at every look that the sums hold. Thread-safe.
#ifndef UBD_TESTS_HARNESS_POOL_WATCH_H_
#define UBD_TESTS_HARNESS_POOL_WATCH_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/mutex.h"
#include "ub/v1/admin.grpc.pb.h"

namespace ubd::testing {

class PoolWatch {
 public:
  // Returns when the watch is in place. The caller must be an admin.
  static absl::StatusOr<std::unique_ptr<PoolWatch>> Start(const std::string& runtime_dir);
  ~PoolWatch();

  // Returns once `done` says so; asked now and after every event. DEADLINE_EXCEEDED with the pools and leases as they
  // are then.
  absl::Status WaitUntil(const std::function<bool()>& done, absl::Duration limit);
  // No lease, and every block free.
  absl::Status WaitUntilAllFree(absl::Duration limit);
  bool AllFree();

  // How many events of a kind came so far.
  uint64_t Count(ub::v1::Event::Kind kind) const;

  // Empty while free + leased + cached + draining + recycling was the total, and no figure above it, at every look so
  // far.
  std::string broken_sums() const;
  ub::v1::Status Status();
  ub::v1::PoolList Pools();
  ub::v1::LeaseList Leases();
  ub::v1::Admin::Stub& admin() { return *admin_; }

 private:
  PoolWatch() = default;
  void Read();
  std::string Describe();

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ub::v1::Admin::Stub> admin_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<ub::v1::Event>> stream_;
  mutable ub::Mutex mu_;
  ub::CondVar changed_;
  std::map<int, uint64_t> counts_ ABSL_GUARDED_BY(mu_);
  uint64_t events_ ABSL_GUARDED_BY(mu_) = 0;
  std::string broken_ ABSL_GUARDED_BY(mu_);
  std::thread reader_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_POOL_WATCH_H_
