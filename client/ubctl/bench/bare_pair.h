// What two threads that poll shared memory can do at best, without any check or protocol: the peers of nop_latency and
// nop_rate. Each has a partner thread on a processor of its own, asleep between slices. Not thread-safe.
#ifndef UB_UBCTL_BENCH_BARE_PAIR_H_
#define UB_UBCTL_BENCH_BARE_PAIR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <semaphore>
#include <thread>
#include <vector>

#include "ub/queue_layout.h"

namespace ub::ctl {

inline constexpr uint32_t kNopBatch = 32;
inline constexpr uint32_t kNopWindow = 128;  // in flight at most, a multiple of kNopBatch

// Runs `body` on a thread on `processor`, once for each Start.
class Partner {
 public:
  Partner(int processor, std::function<void()> body);
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;
  void Start() { go_.release(); }
  void AwaitEnd() { done_.acquire(); }

 private:
  std::binary_semaphore go_{0};
  std::binary_semaphore done_{0};
  std::atomic<bool> leave_{false};
  std::thread thread_;
};

// One number there, one number back.
class PingPong {
 public:
  explicit PingPong(int partner_processor) : partner_(partner_processor, [this] { Echo(); }) {}
  // Nanoseconds of one round trip, the mean of `trips`.
  uint64_t Slice(uint64_t trips);

 private:
  void Echo();
  void Trips(uint64_t trips);
  alignas(64) std::atomic<uint32_t> ping_{0};
  alignas(64) std::atomic<uint32_t> pong_{0};
  alignas(64) uint32_t sent_ = 0;
  Partner partner_;
};

// Entries of a queue's size in, completions of a queue's size out, the same batches.
class BareRing {
 public:
  explicit BareRing(int partner_processor);
  // Entries a second.
  double Slice(uint64_t batches);

 private:
  void Serve();
  void PutBatch();
  void Run(uint64_t batches);
  alignas(64) std::atomic<uint32_t> sq_tail_{0};
  alignas(64) std::atomic<uint32_t> cq_tail_{0};
  alignas(64) std::atomic<bool> stop_{false};
  uint32_t taken_ = 0;  // of completions
  std::array<wire::SubmitEntry, kNopBatch> batch_ = {};
  std::array<wire::CompletionEntry, kNopWindow> got_ = {};
  std::vector<wire::SubmitEntry> sq_;
  std::vector<wire::CompletionEntry> cq_;
  Partner partner_;
};

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_BARE_PAIR_H_
