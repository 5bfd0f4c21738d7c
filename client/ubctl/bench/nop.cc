#include "client/ubctl/bench/nop.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/bare_pair.h"
#include "client/ubctl/bench/processor.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kTripsPerSlice = 500;
constexpr uint64_t kBatchesPerSlice = 200;
constexpr uint64_t kSettleNs = 500000;
constexpr uint64_t kFindDaemonNs = 200000000;
// A NOP that takes longer is lost, not slow.
constexpr uint64_t kLostNs = 10000000000;

class NopLoop {
 public:
  explicit NopLoop(Queue& queue) : queue_(queue) {
    for (uint32_t i = 0; i < kNopBatch; ++i) batch_[i] = NopOp(i);
  }

  absl::Status Trips(uint64_t trips) {
    for (uint64_t i = 0; i < trips; ++i) {
      if (absl::Status status = queue_.Submit({batch_.data(), 1}); !status.ok()) return status;
      if (absl::Status status = Collect(1); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Batches(uint64_t batches) {
    while (batches > 0 || in_flight_ > 0) {
      for (; batches > 0 && in_flight_ + kNopBatch <= kNopWindow; --batches) {
        if (absl::Status status = queue_.Submit(batch_); !status.ok()) return status;
        in_flight_ += kNopBatch;
      }
      size_t got = queue_.Poll(absl::MakeSpan(done_));
      in_flight_ -= static_cast<uint32_t>(got);
      if (absl::Status status = Check(got); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // Polls until `wanted` have come; both sides are awake all the time.
  absl::Status Collect(size_t wanted) {
    while (wanted > 0) {
      size_t got = queue_.Poll(absl::MakeSpan(done_));
      if (absl::Status status = Check(got); !status.ok()) return status;
      wanted -= std::min(got, wanted);
    }
    return absl::OkStatus();
  }

  absl::Status Check(size_t got) {
    for (size_t i = 0; i < got; ++i) {
      if (!done_[i].status.ok()) return done_[i].status;
    }
    if (got > 0) {
      idle_polls_ = 0;
      return absl::OkStatus();
    }
    constexpr uint64_t kPollsPerLook = 4096;  // the clock costs as much as a poll
    if (++idle_polls_ % kPollsPerLook != 0) return absl::OkStatus();
    if (idle_polls_ == kPollsPerLook) idle_since_ = NowNs();
    if (NowNs() - idle_since_ > kLostNs) return absl::DeadlineExceededError("a NOP did not come back within 10 s");
    return absl::OkStatus();
  }

  Queue& queue_;
  std::array<Op, kNopBatch> batch_;
  std::array<Completion, kNopWindow> done_;
  uint32_t in_flight_ = 0;
  uint64_t idle_polls_ = 0;
  uint64_t idle_since_ = 0;
};

// Runs `step` for at least `ns`.
template <class Step>
absl::Status For(uint64_t ns, Step step) {
  absl::Status status;
  for (uint64_t end = NowNs() + ns; status.ok() && NowNs() < end;) status = step();
  return status;
}

class Measurement {
 public:
  Measurement(Queue& queue, const CpuMeter& meter, ProcessorPair pair)
      : queue_(queue), loop_(queue), meter_(meter), ping_pong_(pair.partner), bare_ring_(pair.partner) {}

  absl::Status LatencySlice() {
    uint64_t taken = 0;
    absl::Status status =
        Timed([this] { return loop_.Trips(100); }, [this] { return loop_.Trips(kTripsPerSlice); }, taken);
    if (!status.ok()) return status;
    result_.nop_latency.Add(taken / kTripsPerSlice);
    result_.ping_pong.Add(ping_pong_.Slice(kTripsPerSlice));
    return absl::OkStatus();
  }

  absl::Status RateSlice() {
    uint64_t taken = 0;
    absl::Status status =
        Timed([this] { return loop_.Batches(16); }, [this] { return loop_.Batches(kBatchesPerSlice); }, taken);
    if (!status.ok()) return status;
    result_.nop_rate.push_back(static_cast<double>(kBatchesPerSlice * kNopBatch) * 1e9 / static_cast<double>(taken));
    result_.bare_rate.push_back(bare_ring_.Slice(kBatchesPerSlice));
    return absl::OkStatus();
  }

  NopResult& result() { return result_; }

 private:
  template <class Settle, class Body>
  absl::Status Timed(Settle settle, Body body, uint64_t& taken) {
    if (absl::Status status = For(kSettleNs, settle); !status.ok()) return status;
    Queue::Stats stats = queue_.stats();
    CpuTime cpu = meter_.Now();
    uint64_t before = NowNs();
    absl::Status status = body();
    taken = NowNs() - before;
    CpuTime spent = meter_.Now() - cpu;
    result_.cpu = result_.nop_ns == 0 ? spent : (result_.cpu += spent);
    result_.nop_ns += taken;
    Queue::Stats now = queue_.stats();
    result_.stats.polls += now.polls - stats.polls;
    result_.stats.empty_polls += now.empty_polls - stats.empty_polls;
    result_.stats.completed += now.completed - stats.completed;
    return status;
  }

  Queue& queue_;
  NopLoop loop_;
  const CpuMeter& meter_;
  PingPong ping_pong_;
  BareRing bare_ring_;
  NopResult result_;
};

// On a thread of its own: it pins itself.
absl::StatusOr<NopResult> Run(Queue& queue, const CpuMeter& meter, pid_t daemon, uint64_t slices, bool with_rate) {
  BusiestThread busiest(daemon);
  NopLoop first(queue);
  if (absl::Status status = For(kFindDaemonNs, [&first] { return first.Trips(100); }); !status.ok()) return status;
  auto pair = ChoosePair(AllowedProcessors(), busiest.Processor());
  if (!pair.has_value())
    return absl::FailedPreconditionError("this process may use one processor only: two sides cannot poll at once");
  PinThisThread(pair->own);
  Measurement measurement(queue, meter, *pair);
  for (uint64_t slice = 0; slice < slices; ++slice) {
    if (absl::Status status = measurement.LatencySlice(); !status.ok()) return status;
    if (!with_rate) continue;
    if (absl::Status status = measurement.RateSlice(); !status.ok()) return status;
  }
  measurement.result().note = absl::StrCat("processors ", pair->own, " and ", pair->partner);
  return std::move(measurement.result());
}

}  // namespace

absl::StatusOr<NopResult> MeasureNops(Client& client, const CpuMeter& meter, pid_t daemon, uint64_t slices,
                                      bool with_rate) {
  auto queue = Queue::Open(client, {.depth = kNopWindow});
  if (!queue.ok()) return queue.status();
  absl::StatusOr<NopResult> result = absl::InternalError("not run");
  std::thread([&] { result = Run(**queue, meter, daemon, slices, with_rate); }).join();
  return result;
}

}  // namespace ub::ctl
