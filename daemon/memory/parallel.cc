#include "daemon/memory/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "proto/wire/mutex.h"

namespace ubd {
namespace {

// The first error of several threads; after it none starts another piece.
class FirstError {
 public:
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void Note(absl::Status status) {
    ub::MutexLock lock(&mu_);
    if (status_.ok()) status_ = std::move(status);
    failed_.store(true, std::memory_order_relaxed);
  }
  absl::Status status() {
    ub::MutexLock lock(&mu_);
    return status_;
  }

 private:
  std::atomic<bool> failed_{false};
  ub::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::Status ForEachInParallel(size_t count, const std::function<absl::Status(size_t)>& work) {
  std::atomic<size_t> next{0};
  FirstError error;
  auto run = [&] {
    for (size_t i = next++; i < count && !error.failed(); i = next++) {
      if (absl::Status status = work(i); !status.ok()) error.Note(std::move(status));
    }
  };
  const size_t width = std::min<size_t>(std::max(std::thread::hardware_concurrency(), 1U), count);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < width; ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  return error.status();
}

}  // namespace ubd
