// A client of ubd without libub: lifeline frames and stubs by hand, so that a test can stop at any step of a grant, or
// misbehave at it. Also how a test speaks to Admin. One object is for one thread at a time, except that stubs may be
// used by several.
#ifndef UBD_TESTS_HARNESS_RAW_CLIENT_H_
#define UBD_TESTS_HARNESS_RAW_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/frame.h"
#include "proto/wire/unique_fd.h"
#include "ub/v1/admin.grpc.pb.h"
#include "ub/v1/broker.grpc.pb.h"

namespace ubd::testing {

// A connected socket to `name` (ubd.sock, lifeline.sock) of a runtime directory.
absl::StatusOr<ub::UniqueFd> ConnectRaw(const std::string& runtime_dir, std::string_view name, int type);
// A gRPC channel over such a connection of its own.
absl::StatusOr<std::shared_ptr<grpc::Channel>> RawChannel(const std::string& runtime_dir);

struct RawGrant {
  ub::wire::Grant frame;  // the last one of the lease
  std::vector<ub::UniqueFd> fds;
};

class RawClient {
 public:
  // Hello and Welcome, then an RPC channel.
  static absl::StatusOr<std::unique_ptr<RawClient>> Connect(const std::string& runtime_dir,
                                                            std::string_view name = "raw");

  int lifeline() const { return lifeline_.get(); }
  ub::UniqueFd TakeLifeline() { return std::move(lifeline_); }
  int page_fd() const { return page_.get(); }
  const ub::wire::Welcome& welcome() const { return welcome_; }
  ub::v1::Broker::Stub& broker() { return *broker_; }
  ub::v1::Admin::Stub& admin() { return *admin_; }
  // Token and deadline.
  std::unique_ptr<grpc::ClientContext> Context(absl::Duration limit = absl::Seconds(30)) const;

  absl::StatusOr<ub::v1::Lease> Acquire(uint64_t bytes, uint64_t request, absl::Duration wait = absl::ZeroDuration(),
                                        bool cacheable = false);
  // Grant frames of the lifeline until one lease is complete.
  absl::StatusOr<RawGrant> ReadGrant(absl::Duration limit = absl::Seconds(30));
  grpc::Status Release(uint64_t lease);

 private:
  RawClient() = default;

  ub::UniqueFd lifeline_;
  ub::UniqueFd page_;
  ub::wire::Welcome welcome_ = {};
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<ub::v1::Broker::Stub> broker_;
  std::unique_ptr<ub::v1::Admin::Stub> admin_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_RAW_CLIENT_H_
