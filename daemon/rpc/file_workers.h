// The threads for what may block on a file system or take long: opening a client's file, registering its memory. Few,
// asleep while there is nothing to do, with a bounded queue. Users take turns, and one user has at most one of them, so
// that a file system that hangs takes no other user's service away.
//
// Thread-safe.
#ifndef UBD_RPC_FILE_WORKERS_H_
#define UBD_RPC_FILE_WORKERS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/block.h"
#include "proto/wire/mutex.h"

namespace ubd {

class FileWorkers {
 public:
  static constexpr int kThreads = 2;
  static constexpr size_t kMostPerUid = 64;
  static constexpr size_t kMost = 1024;

  FileWorkers();
  ~FileWorkers() { Stop(absl::ZeroDuration()); }

  // False: too much is waiting, of this user or in all; `job` is dropped.
  bool Run(Uid uid, std::function<void()> job);
  // Drops what waits, and waits for what runs; at most `grace`. False: a job is stuck; then whatever it uses must live
  // as long as the process.
  bool Stop(absl::Duration grace);

 private:
  struct State {
    ub::Mutex mu;
    ub::CondVar changed;
    bool stopping ABSL_GUARDED_BY(mu) = false;
    int alive ABSL_GUARDED_BY(mu) = 0;
    size_t waiting ABSL_GUARDED_BY(mu) = 0;
    std::map<Uid, std::deque<std::function<void()>>> jobs ABSL_GUARDED_BY(mu);
    std::deque<Uid> turns ABSL_GUARDED_BY(mu);  // users with jobs and none running
    std::set<Uid> busy ABSL_GUARDED_BY(mu);
  };
  static void Work(const std::shared_ptr<State>& state, int number);
  static void WorkOne(State& state, Uid uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu);

  std::shared_ptr<State> state_;  // a stuck thread keeps it
  std::vector<std::thread> threads_;
};

}  // namespace ubd

#endif  // UBD_RPC_FILE_WORKERS_H_
