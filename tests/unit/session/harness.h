// What the session tests share: a session server in this process over the real Broker and tiny fake memory, raw
// lifeline clients, and client processes. Real sockets and real processes throughout.
#ifndef UBD_TESTS_UNIT_SESSION_HARNESS_H_
#define UBD_TESTS_UNIT_SESSION_HARNESS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/broker.h"
#include "daemon/session/server.h"
#include "daemon/session/sockets.h"
#include "proto/wire/fd_message.h"
#include "proto/wire/lifeline.h"
#include "proto/wire/mutex.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

// A private directory, mode 0755, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Whether `done` became true in time.
bool Eventually(const std::function<bool()>& done, absl::Duration within = absl::Seconds(10));

// Waits at most `within` for something to read. False: nothing.
bool WaitReadable(int fd, absl::Duration within = absl::Seconds(10));

size_t OpenFdCount();

// --- raw clients; usable in forked children
ub::UniqueFd ConnectTo(const std::string& path, int type, int* error = nullptr);
absl::Status SendHello(int lifeline, const std::string& name = "test", const std::vector<int>& fds = {});
// The next packet; UNAVAILABLE when none comes in time.
absl::StatusOr<ub::wire::Packet> Receive(int lifeline, absl::Duration within = absl::Seconds(10));
// The next packet as a frame of one type; anything else is an error.
template <class Frame>
absl::StatusOr<Frame> ReceiveFrame(int lifeline, std::vector<ub::UniqueFd>* fds = nullptr);
// An Offer frame with these descriptors.
absl::Status SendOffer(int lifeline, uint64_t number, const std::vector<int>& fds);
// True when the peer hung up (within time), whatever is still to read.
bool HungUp(int fd, absl::Duration within = absl::Seconds(10));

struct RawClient {
  ub::UniqueFd lifeline;
  ub::wire::Welcome welcome = {};
  ub::UniqueFd page;
  std::string token_hex() const;
  SessionId id() const { return SessionId(welcome.session); }
};
absl::StatusOr<RawClient> Join(const std::string& lifeline_path, const std::string& name = "test");

// --- the daemon
class FakeMemory : public BlockMemory {
 public:
  void Reclaim(BlockId block, ReclaimOrder order) override;
  void DropOwn(BlockId) override {}
  absl::StatusOr<ub::UniqueFd> Open(BlockId block, Access access);
  // Where a reclaimed block's news go; on another thread.
  void Connect(std::function<void(std::function<void()>)> later, ReclaimSink* sink);
  // Open fails with what this makes, from now on (null: works). Made anew each time: a Status that two threads share
  // would look like a race to a sanitizer that cannot see into libabsl.
  void FailOpen(std::function<absl::Status()> with);
  // All blocks share one backing, for cases that are short of descriptors.
  void ShareOneBacking();
  // The number behind the memory of a block: st_ino.
  ino_t InodeOf(BlockId block);

 private:
  int BackingLocked(BlockId block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ub::Mutex mu_;
  std::map<BlockId, ub::UniqueFd> backings_ ABSL_GUARDED_BY(mu_);
  std::function<absl::Status()> fail_ ABSL_GUARDED_BY(mu_);
  bool share_one_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void(std::function<void()>)> later_;
  ReclaimSink* sink_ = nullptr;
};

class EventLog : public Observer {
 public:
  void OnEvent(const Event& event) override;
  bool WaitFor(EventKind kind, SessionId session, absl::Duration within = absl::Seconds(10));
  size_t Count(EventKind kind);

 private:
  ub::Mutex mu_;
  ub::CondVar changed_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mu_);
};

struct DaemonOptions {
  uint32_t blocks = 2048;
  SessionLimits limits;
  std::function<void(int)> serve_rpc = [](int) {};
  SessionHooks hooks = {};
  std::function<std::unique_ptr<Doorman>()> doorman = [] { return nullptr; };
};

class TestDaemon {
 public:
  explicit TestDaemon(DaemonOptions options = {});
  ~TestDaemon();
  std::string lifeline() const { return dir_ / "lifeline.sock"; }
  std::string rpc() const { return dir_ / "ubd.sock"; }
  Broker& broker() { return *broker_; }
  SessionServer& server() { return *server_; }
  LeasePages& pages() { return *pages_; }
  FakeMemory& memory() { return memory_; }
  EventLog& events() { return events_; }
  size_t sessions() { return broker_->Totals().sessions; }
  std::shared_ptr<Session> Find(const RawClient& client) { return server_->registry().Find(client.id()); }
  // The test's own copies of the listening sockets.
  void CloseListeners();
  void StopAndJoin(absl::Duration grace);

  // Like an Acquire RPC: grants and delivers; `done` gets what the RPC would answer.
  void Acquire(SessionId session, uint32_t blocks, std::function<void(absl::StatusOr<Grant>)> done);
  // The same, waiting for the answer.
  absl::StatusOr<Grant> AcquireNow(SessionId session, uint32_t blocks, absl::Duration within = absl::Seconds(10));

  // Of the loop's thread so far.
  absl::Duration LoopCpu();
  uint64_t LoopSleeps();

 private:
  TempDir dir_;
  SystemClock clock_;
  FakeMemory memory_;
  EventLog events_;
  std::unique_ptr<LeasePages> pages_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<ListeningSocket> lifeline_socket_, rpc_socket_;
  std::unique_ptr<SessionServer> server_;
  std::thread loop_;
  std::atomic<pid_t> loop_tid_{0};
  std::atomic<uint64_t> next_request_{1};
};

// --- processes
// A forked process. It has no descriptor of its parent's but stdio and its own end of a channel of single bytes.
class Child {
 public:
  class Channel {
   public:
    void Say(char what) const;
    // 0 when the other side has gone, or nothing came in time.
    char Hear(absl::Duration within = absl::Seconds(30)) const;
    int fd = -1;
  };
  explicit Child(const std::function<int(const Channel&)>& body);
  ~Child();
  const Channel& channel() const { return channel_; }
  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Its exit code; 256 + signal when killed; -1 when it does not end in time (it is killed then).
  int Wait(absl::Duration within = absl::Seconds(60));

 private:
  pid_t pid_ = -1;
  ub::UniqueFd end_;
  Channel channel_;
};

// Sets uid, gid and the only supplementary group of this process; for children. False: may not.
bool BecomeUser(uid_t uid, gid_t gid, gid_t group);

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_SESSION_HARNESS_H_
