// A scripted daemon for libub's tests: a real lifeline and real RPCs over a private runtime directory, leases of made
// memory, and a knob for each thing that can go wrong. It trusts its caller and checks nothing; what the real daemon
// does is tested against the real daemon.
#ifndef UB_TESTS_CLIENT_FAKE_DAEMON_H_
#define UB_TESTS_CLIENT_FAKE_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"
#include "tests/unit/client/test_memory.h"
#include "ub/v1/admin.grpc.pb.h"
#include "ub/v1/broker.grpc.pb.h"

namespace ub {

class FakeDaemon final : public v1::Broker::Service {
 public:
  static constexpr uint64_t kBlockBytes = 2 << 20;

  // What to do with the grant of a lease that was answered with OK.
  struct Script {
    grpc::Status acquire;                 // not OK: refused
    std::function<void()> before_answer;  // runs in the handler of Acquire
    bool send_grant = true;
    bool send_failure = false;  // a GrantFailed instead
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    uint64_t fd_bytes = kBlockBytes;
    uint32_t fds_per_frame = 253;
  };

  FakeDaemon();
  ~FakeDaemon() override;

  const std::string& dir() const { return dir_; }
  TestPage& page() { return page_; }
  void Set(const Script& script);
  // To every open event stream, in order.
  void Emit(const v1::Event& event);
  void Emit(v1::Event::Kind kind, uint64_t lease);
  // Ends all event streams.
  void EndStreams();
  // Blocks until so many streams are open.
  void AwaitWatchers(int count);
  void StopServer();

  std::vector<uint64_t> released() const;
  std::vector<uint64_t> released_requests() const;
  std::vector<v1::AcquireRequest> acquires() const;
  bool lifeline_hung_up() const { return hung_up_.load(); }
  void AwaitHangUp() const { hung_up_.wait(false); }
  void SetListed(std::vector<uint64_t> leases);
  // Calls (the oldest first) that are answered UNAVAILABLE without a reason, as a broken stream is.
  void LoseAnswers(int count) { lose_.store(count); }

  // A refusal as the daemon makes them.
  static grpc::Status Refusal(grpc::StatusCode code, const std::string& reason, const std::string& text);

  grpc::Status Acquire(grpc::ServerContext*, const v1::AcquireRequest*, v1::AcquireResponse*) override;
  grpc::Status Release(grpc::ServerContext*, const v1::ReleaseRequest*, v1::ReleaseResponse*) override;
  grpc::Status Share(grpc::ServerContext*, const v1::ShareRequest*, v1::ShareResponse*) override;
  grpc::Status Attach(grpc::ServerContext*, const v1::AttachRequest*, v1::AttachResponse*) override;
  grpc::Status Watch(grpc::ServerContext*, const v1::WatchRequest*, grpc::ServerWriter<v1::Event>*) override;
  grpc::Status Ping(grpc::ServerContext*, const v1::PingRequest*, v1::PingResponse*) override;

 private:
  class FakeAdmin final : public v1::Admin::Service {
   public:
    explicit FakeAdmin(FakeDaemon& daemon) : daemon_(daemon) {}
    grpc::Status ListLeases(grpc::ServerContext*, const v1::ListLeasesRequest*, v1::LeaseList*) override;

   private:
    FakeDaemon& daemon_;
  };

  void ServeLifeline();
  grpc::Status CheckToken(grpc::ServerContext* context) const;
  void Grant(uint64_t bytes, bool cacheable, v1::Access access, v1::Lease* lease);
  void SendFds(const v1::Lease& lease, const Script& script);

  std::string dir_;
  TestPage page_;
  UniqueFd listener_;
  FakeAdmin admin_{*this};
  std::unique_ptr<grpc::Server> server_;
  std::thread lifeline_thread_;
  std::atomic<bool> hung_up_{false};
  std::atomic<int> lose_{0};

  mutable Mutex mu_;
  CondVar changed_;
  UniqueFd lifeline_ ABSL_GUARDED_BY(mu_);
  Script script_ ABSL_GUARDED_BY(mu_);
  uint64_t next_lease_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, v1::Lease> by_request_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> released_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> released_requests_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::AcquireRequest> acquires_ ABSL_GUARDED_BY(mu_);
  std::vector<uint64_t> listed_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::Event> events_ ABSL_GUARDED_BY(mu_);
  int watchers_ ABSL_GUARDED_BY(mu_) = 0;
  bool streams_end_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace ub

#endif  // UB_TESTS_CLIENT_FAKE_DAEMON_H_
