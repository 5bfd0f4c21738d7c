#include "client/ubctl/bench/segments.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/bench/nop.h"
#include "client/ubctl/bench/sides.h"
#include "client/ubctl/load/plain_load.h"
#include "client/ubctl/load/result.h"

namespace ub::ctl {
namespace {

constexpr char kAsExpected[] = "as expected";
constexpr double kMostPollShare = 0.99;
constexpr double kNearlyAProcessor = 0.9;

Segment NotMeasured(const char* name, const char* unit, const absl::Status& why) {
  Segment segment;
  segment.set_name(name);
  segment.set_unit(unit);
  segment.set_verdict("not measured: " + std::string(why.message()));
  return segment;
}

double WriteRate(std::byte* data, size_t size, int value) {
  uint64_t before = NowNs();
  std::memset(data, value, size);
  asm volatile("" : : "r"(data) : "memory");  // the bytes are wanted
  return static_cast<double>(size) * 1e9 / static_cast<double>(std::max<uint64_t>(NowNs() - before, 1));
}

void SetCpu(Segment& segment, const CpuTime& cpu, uint64_t ns) {
  if (ns == 0) return;
  segment.set_client_cpu(static_cast<double>(cpu.client_ns) / static_cast<double>(ns));
  if (cpu.daemon_ns.has_value()) segment.set_daemon_cpu(static_cast<double>(*cpu.daemon_ns) / static_cast<double>(ns));
}

void SetEmptyPolls(Segment& segment, const Queue::Stats& stats) {
  if (stats.polls > 0)
    segment.set_empty_poll_share(static_cast<double>(stats.empty_polls) / static_cast<double>(stats.polls));
}

// Polling that finds nothing costs processors that something else needs.
void NoteBusyPolling(Segment& segment) {
  if (segment.empty_poll_share() < kMostPollShare || segment.daemon_cpu() < kNearlyAProcessor) return;
  segment.set_note(
      absl::StrFormat("%.1f%% of the client's polls find nothing while the daemon keeps %.1f processors busy: with few "
                      "processors, wait "
                      "instead of polling (Queue::Wait) and let the daemon spin for less (engine { spin })",
                      segment.empty_poll_share() * 100, segment.daemon_cpu()));
}

}  // namespace

void JudgeAtLeast(Segment& segment, double bound, const std::string& otherwise) {
  if (!segment.has_value() || !segment.has_expected() || segment.expected() <= 0) return;
  segment.set_ratio(segment.value() / segment.expected());
  segment.set_verdict(segment.ratio() >= bound ? kAsExpected : otherwise);
}

void JudgeAtMost(Segment& segment, double bound, const std::string& otherwise) {
  if (!segment.has_value() || !segment.has_expected() || segment.expected() <= 0) return;
  segment.set_ratio(segment.value() / segment.expected());
  segment.set_verdict(segment.ratio() <= bound ? kAsExpected : otherwise);
}

Segment MemoryWrite(Workbench& bench, const SegmentsPlan& plan) {
  constexpr char kName[] = "memory_write";
  constexpr char kUnit[] = "bytes/s";
  size_t size = bench.memory.size();
  void* own = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (own == MAP_FAILED) return NotMeasured(kName, kUnit, absl::ResourceExhaustedError("no memory to compare with"));
  std::vector<double> leased;
  std::vector<double> plain;
  for (uint64_t pair = 0; pair <= plan.pairs; ++pair) {
    double ours = WriteRate(bench.memory.data(), size, static_cast<int>(pair));
    double theirs = WriteRate(static_cast<std::byte*>(own), size, static_cast<int>(pair));
    if (pair == 0) continue;  // warming up
    leased.push_back(ours);
    plain.push_back(theirs);
  }
  munmap(own, size);
  Segment segment;
  segment.set_name(kName);
  segment.set_value(Median(leased));
  segment.set_unit(kUnit);
  segment.set_expected(Median(plain));
  segment.set_expected_from("memset of as much private memory");
  segment.set_samples(leased.size());
  JudgeAtLeast(segment, 0.8,
               "slow: leased memory is written slower than private memory; look at the pool's NUMA node and page size "
               "('ubctl pools')");
  return segment;
}

Segment DeviceRead(Workbench& bench, const SegmentsPlan& plan) {
  constexpr char kName[] = "device_read";
  constexpr char kUnit[] = "bytes/s";
  Bytes chunk = std::min(ChunkFor(bench.file_bytes(), MiB(1)), Bytes(bench.memory.size()));
  if (chunk.count() == 0) return NotMeasured(kName, kUnit, absl::FailedPreconditionError("the file is too small"));
  LoadPlan load = {.chunk = chunk, .depth = 16, .policy = PathPolicy::kDirectOnly, .at_most = plan.time};
  std::vector<double> queue;
  std::vector<double> plain;
  CpuTime cpu;
  uint64_t ns = 0;
  Queue::Stats stats;
  for (uint64_t pair = 0; pair <= plan.pairs; ++pair) {
    auto ours = bench.Load().Run(load);
    if (ours.ok()) {
      if (absl::Status direct = CheckAllDirect(ours->paths); !direct.ok()) ours = direct;
    }
    if (!ours.ok()) return NotMeasured(kName, kUnit, ours.status());
    auto theirs = RunPlainUring(bench.fd.get(), load, bench.meter);
    if (!theirs.ok()) return NotMeasured(kName, kUnit, theirs.status());
    if (pair == 0) continue;
    queue.push_back(ours->bytes_per_s());
    plain.push_back(theirs->bytes_per_s());
    cpu = ns == 0 ? ours->cpu : (cpu += ours->cpu);
    ns += ours->ns;
    stats.polls += ours->queue.polls;
    stats.empty_polls += ours->queue.empty_polls;
  }
  Segment segment;
  segment.set_name(kName);
  segment.set_value(Median(queue));
  segment.set_unit(kUnit);
  segment.set_expected(Median(plain));
  segment.set_expected_from("io_uring with O_DIRECT and fixed buffers, without ubd");
  segment.set_samples(queue.size());
  SetCpu(segment, cpu, ns);
  SetEmptyPolls(segment, stats);
  JudgeAtLeast(segment, 0.9,
               "slow: the device gives more to a plain loop; is the daemon busy with others ('ubctl queues')?");
  NoteBusyPolling(segment);
  return segment;
}

Segment CompletionHandling(Workbench& bench, const SegmentsPlan& plan) {
  constexpr char kName[] = "completion_handling";
  constexpr char kUnit[] = "ns";
  auto nops = MeasureNops(*bench.client, bench.meter, bench.setting.status.pid(), plan.slices, /*with_rate=*/false);
  if (!nops.ok()) return NotMeasured(kName, kUnit, nops.status());
  Segment segment;
  segment.set_name(kName);
  segment.set_unit(kUnit);
  if (auto p50 = nops->nop_latency.Percentile(50)) segment.set_value(static_cast<double>(*p50));
  if (auto p50 = nops->ping_pong.Percentile(50)) segment.set_expected(static_cast<double>(*p50));
  segment.set_expected_from(absl::StrCat("a bare shared-memory ping-pong, ", nops->note));
  segment.set_samples(nops->nop_latency.count());
  SetCpu(segment, nops->cpu, nops->nop_ns);
  SetEmptyPolls(segment, nops->stats);
  JudgeAtMost(segment, 3,
              "slow: an entry and its completion take more than three bare round trips; does something else use the "
              "processors, or do the two sides lie on different sockets?");
  NoteBusyPolling(segment);
  return segment;
}

}  // namespace ub::ctl
