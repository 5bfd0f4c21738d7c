#include "client/ubctl/bench/bare_pair.h"

#include <utility>

#include "client/ubctl/bench/processor.h"
#include "client/ubctl/monotonic.h"

namespace ub::ctl {
namespace {

constexpr uint32_t kStop = UINT32_MAX;
// Long enough for a partner that was asleep, and for a daemon that still spins, to be out of the way.
constexpr uint64_t kSettleNs = 500000;

}  // namespace

Partner::Partner(int processor, std::function<void()> body)
    : thread_([this, processor, body = std::move(body)] {
        PinThisThread(processor);
        for (go_.acquire(); !leave_.load(); go_.acquire()) {
          body();
          done_.release();
        }
      }) {}

Partner::~Partner() {
  leave_.store(true);
  go_.release();
  thread_.join();
}

void PingPong::Echo() {
  uint32_t seen = pong_.load(std::memory_order_relaxed);
  while (true) {
    uint32_t now = ping_.load(std::memory_order_acquire);
    if (now == seen) continue;
    if (now == kStop) return;
    seen = now;
    pong_.store(now, std::memory_order_release);
  }
}

void PingPong::Trips(uint64_t trips) {
  for (uint64_t i = 0; i < trips; ++i) {
    sent_ = (sent_ + 1) % kStop;
    ping_.store(sent_, std::memory_order_release);
    while (pong_.load(std::memory_order_acquire) != sent_) {
    }
  }
}

uint64_t PingPong::Slice(uint64_t trips) {
  ping_.store(sent_);
  partner_.Start();
  for (uint64_t settle = NowNs() + kSettleNs; NowNs() < settle;) Trips(100);
  uint64_t before = NowNs();
  Trips(trips);
  uint64_t taken = NowNs() - before;
  ping_.store(kStop);
  partner_.AwaitEnd();
  return taken / trips;
}

BareRing::BareRing(int partner_processor)
    : sq_(kNopWindow), cq_(kNopWindow), partner_(partner_processor, [this] { Serve(); }) {}

void BareRing::Serve() {
  uint32_t done = cq_tail_.load(std::memory_order_relaxed);
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t tail = sq_tail_.load(std::memory_order_acquire);
    if (tail == done) continue;
    for (; done != tail; ++done) {
      wire::SubmitEntry entry = sq_[done % kNopWindow];
      cq_[done % kNopWindow] = wire::CompletionEntry{.user_data = entry.user_data, .bytes = entry.length};
    }
    cq_tail_.store(done, std::memory_order_release);
  }
}

void BareRing::PutBatch() {
  uint32_t tail = sq_tail_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kNopBatch; ++i) sq_[(tail + i) % kNopWindow] = batch_[i];
  sq_tail_.store(tail + kNopBatch, std::memory_order_release);
}

void BareRing::Run(uint64_t batches) {
  uint32_t in_flight = 0;
  while (batches > 0 || in_flight > 0) {
    for (; batches > 0 && in_flight + kNopBatch <= kNopWindow; --batches) {
      PutBatch();
      in_flight += kNopBatch;
    }
    uint32_t tail = cq_tail_.load(std::memory_order_acquire);
    for (; taken_ != tail; ++taken_) {
      got_[taken_ % kNopWindow] = cq_[taken_ % kNopWindow];
      --in_flight;
    }
  }
}

double BareRing::Slice(uint64_t batches) {
  stop_.store(false);
  partner_.Start();
  for (uint64_t settle = NowNs() + kSettleNs; NowNs() < settle;) Run(16);
  uint64_t before = NowNs();
  Run(batches);
  uint64_t taken = NowNs() - before;
  stop_.store(true);
  partner_.AwaitEnd();
  return static_cast<double>(batches * kNopBatch) * 1e9 / static_cast<double>(taken);
}

}  // namespace ub::ctl
