// bench queue: what the data path promises, each figure beside its peer from the same run.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/bench/bare_pair.h"
#include "client/ubctl/bench/fio_pairs.h"
#include "client/ubctl/bench/nop.h"
#include "client/ubctl/bench/samples.h"
#include "client/ubctl/bench_commands.h"
#include "client/ubctl/load/workbench.h"
#include "client/ubctl/monotonic.h"

namespace ub::ctl {
namespace {

constexpr Bytes kScratchBytes = MiB(256);
constexpr uint64_t kSlices = 120;

struct QueueOptions {
  std::string file;
  std::string directory = "/var/tmp";
  std::string pool;
  bool full = false;
  bool quick = false;
};

Figure RateFigure(const char* name, const std::vector<double>& rates, const std::string& note) {
  Figure figure;
  figure.set_name(name);
  figure.set_value(Median(rates));
  figure.set_unit("1/s");
  figure.set_samples(rates.size());
  figure.set_note(note);
  return figure;
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void AddNops(Workbench& bench, uint64_t slices, BenchReport& report) {
  auto nops = MeasureNops(*bench.client, bench.meter, bench.setting.status.pid(), slices, /*with_rate=*/true);
  Ratio latency;
  Ratio rate;
  if (nops.ok()) {
    std::string polls = absl::StrFormat("%.0f%% of the client's polls were empty; %s",
                                        100 * Share(nops->stats.empty_polls, nops->stats.polls), nops->note);
    *report.add_figures() =
        TimeFigure("nop_latency", nops->nop_latency, "submit to completion, both polling; " + polls);
    *report.add_figures() = TimeFigure("ping_pong", nops->ping_pong, "a bare number there and back; " + nops->note);
    *report.add_figures() =
        RateFigure("nop_rate", nops->nop_rate, absl::StrCat("batches of ", kNopBatch, ", ", kNopWindow, " in flight"));
    *report.add_figures() = RateFigure("bare_ring_rate", nops->bare_rate, "the same batches, no checks");
    latency = P50Ratio("", report.figures(0), report.figures(1));
    rate.set_value(Median(nops->nop_rate) / Median(nops->bare_rate));
  } else {
    for (const char* name : {"nop_latency", "ping_pong", "nop_rate", "bare_ring_rate"})
      *report.add_figures() = NoFigure(name, nops.status());
  }
  latency.set_name("nop_latency/ping_pong");
  rate.set_name("nop_rate/bare_ring_rate");
  *report.add_ratios() = AtMost(latency, 3);
  *report.add_ratios() = AtLeast(rate, 0.3);
}

void AddReads(Workbench& bench, const QueueOptions& options, BenchReport& report) {
  absl::Duration time = options.full ? absl::Seconds(5) : options.quick ? absl::Milliseconds(100) : absl::Seconds(1);
  uint64_t pairs = options.full ? 9 : options.quick ? 1 : 5;
  AddFioPairs(bench,
              {.name = "sequential_read",
               .load = {.chunk = MiB(1), .depth = 16},
               .pairs = pairs,
               .time = time,
               .least_throughput = 0.95,
               .most_cpu = 1.5},
              report);
  AddFioPairs(bench,
              {.name = "random_read",
               .load = {.chunk = KiB(4), .depth = 64, .random = true},
               .pairs = pairs,
               .time = time,
               .least_throughput = 0.85},
              report);
}

ExitCode Run(const Context& context, const QueueOptions& options) {
  uint64_t start = NowNs();
  auto fd = options.file.empty() ? MakeScratchFile(options.directory, kScratchBytes) : OpenForReading(options.file);
  if (!fd.ok()) return Fail(context, fd.status());
  auto bench =
      Workbench::Open(context, *std::move(fd), {.pool = options.pool, .memory = MiB(16), .wait = context.timeout});
  if (!bench.ok()) return Fail(context, bench.status());
  BenchReport report;
  *report.mutable_machine() = DescribeMachine(bench->setting);
  uint64_t slices = options.quick ? 4 : options.full ? 5 * kSlices : kSlices;
  AddNops(*bench, slices, report);
  AddReads(*bench, options, report);
  report.set_rounds(slices);
  report.set_seconds(SecondsSince(start));
  return Print(context, report, BenchText(report));
}

}  // namespace

void AddBenchQueue(CommandLine& line, CLI::App& bench) {
  auto options = std::make_shared<QueueOptions>();
  CLI::App& queue = line.Command(bench, "queue", "Time the queue itself, and reads through it beside fio's",
                                 [options](const Context& c) { return Run(c, *options); });
  CLI::Option* file =
      queue.add_option("--file", options->file, "Read this file (default: one of 256 MiB, made and removed)")
          ->type_name("FILE");
  queue.add_option("--dir", options->directory, "Where to make that file")
      ->excludes(file)
      ->type_name("DIR")
      ->capture_default_str();
  queue.add_option("--pool", options->pool, "Into this pool (default: the first one)")->type_name("NAME");
  CLI::Option* full = queue.add_flag("--full", options->full, "Longer, for figures to be quoted; takes minutes");
  queue.add_flag("--quick", options->quick, "Few samples: a look, no measurement")->excludes(full);
}

}  // namespace ub::ctl
