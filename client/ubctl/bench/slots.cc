#include "client/ubctl/bench/slots.h"

#include <barrier>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/samples.h"
#include "ub/slot_pool.h"

namespace ub::ctl {
namespace {

constexpr Bytes kSlotBytes = KiB(256);

// The sum keeps the compiler from dropping a take; a failed one is worth nothing as a figure.
struct Result {
  Samples samples;
  uint64_t failed = 0;
};

void Measure(SlotPool& pool, uint64_t samples, std::barrier<>& start, Result& result) {
  for (uint64_t i = 0; i < kShortOps; ++i) result.failed += !pool.Take();  // fills this thread's magazine
  start.arrive_and_wait();
  for (uint64_t sample = 0; sample < samples; ++sample) {
    uint64_t before = NowNs();
    for (uint64_t i = 0; i < kShortOps; ++i) {
      Slot slot = pool.Take();
      result.failed += !slot;
    }
    result.samples.Add((NowNs() - before) / kShortOps);
  }
}

}  // namespace

Figure SlotTakeReturn(const BenchSetting& setting, std::string_view name, int threads) {
  auto client = ConnectFor(setting, Bytes(0));
  if (!client.ok()) return NoFigure(name, client.status());
  auto pool = SlotPool::Create(
      **client,
      {.pool = setting.pool.name(), .slot = kSlotBytes, .bytes = kLeaseBytes, .wait = setting.context.timeout});
  if (!pool.ok()) return NoFigure(name, pool.status());
  std::vector<Result> results(static_cast<size_t>(threads));
  std::barrier<> start(threads);
  std::vector<std::thread> workers;
  workers.reserve(results.size());
  for (Result& result : results) {
    workers.emplace_back([&, samples = setting.samples] { Measure(**pool, samples, start, result); });
  }
  for (std::thread& worker : workers) worker.join();
  Samples all;
  uint64_t failed = 0;
  for (const Result& result : results) {
    all.Add(result.samples);
    failed += result.failed;
  }
  if (failed > 0) return NoFigure(name, absl::StrCat(failed, " takes found no free slot"));
  return TimeFigure(name, all,
                    absl::StrCat("take and return together, ", kShortOps, " a sample, each of ", threads, " threads"));
}

}  // namespace ub::ctl
