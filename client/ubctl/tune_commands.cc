// tune queue-depth, tune chunk: a curve, its knee, and advice. They change nothing.
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/admin.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/human.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/side_text.h"
#include "client/ubctl/table.h"
#include "client/ubctl/tune/channels.h"
#include "client/ubctl/tune/sweep.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

constexpr uint64_t kSmallestChunk = uint64_t{4} << 10;
constexpr uint64_t kLargestChunk = uint64_t{64} << 20;
constexpr uint64_t kDefaultChunk = uint64_t{256} << 10;  // the daemon's own bound for direct storage transfers
constexpr uint32_t kChunkDepth = 16;
constexpr Bytes kMostMemory = MiB(256);

struct TuneOptions {
  std::string file;
  std::string pool;
  std::string chunk = "256KiB";
  double seconds = 0.3;
  uint64_t rounds = 3;
  uint64_t streams = 1;
  uint64_t blocks = 0;
  bool random = false;
};

std::string Text(const TuneReport& report) {
  bool chunk = report.what() == "chunk";
  Table table({{chunk ? "CHUNK" : "DEPTH", Align::kRight},
               {"THROUGHPUT", Align::kRight},
               {"P50", Align::kRight},
               {"P99", Align::kRight},
               {"CPU-S/GB", Align::kRight},
               {chunk ? "STAGED" : "", Align::kRight},
               {""}});
  for (const TunePoint& point : report.points()) {
    std::string mark = report.has_knee() && point.setting() == report.knee() ? "<- knee" : "";
    if (point.setting() == report.recommended()) mark += mark.empty() ? "<- recommended" : ", recommended";
    if (report.has_start() && point.setting() == report.start()) mark += mark.empty() ? "<- start" : ", start";
    table.Add({chunk ? HumanSize(point.setting()) : absl::StrCat(point.setting()),
               RateText(point.has_bytes_per_s(), point.bytes_per_s()),
               point.has_p50_ns() ? HumanDuration(point.p50_ns()) : "-",
               point.has_p99_ns() ? HumanDuration(point.p99_ns()) : "-",
               point.has_cpu_s_per_gb() ? absl::StrFormat("%.3f", point.cpu_s_per_gb()) : "-",
               chunk ? RateText(point.has_staged_bytes_per_s(), point.staged_bytes_per_s()) : "", mark});
  }
  std::string text = absl::StrCat(report.file(), ", path ", report.path(),
                                  report.reason().empty() ? "" : absl::StrCat(": ", report.reason()), "\n");
  if (report.has_start_formula()) absl::StrAppend(&text, "starting point: ", report.start_formula(), "\n");
  absl::StrAppend(&text, "\n", table.Text(), "\n", report.advice(), "\n");
  for (const std::string& note : report.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text + "nothing was changed\n";
}

absl::StatusOr<Workbench> OpenBench(const Context& context, const TuneOptions& options, Bytes memory) {
  auto fd = OpenForReading(options.file);
  if (!fd.ok()) return fd.status();
  auto bench =
      Workbench::Open(context, *std::move(fd),
                      {.pool = options.pool, .memory = std::min(memory, kMostMemory), .wait = context.timeout});
  if (bench.ok() && bench->file_bytes() < kSmallestChunk)
    return absl::FailedPreconditionError(absl::StrCat(options.file, " is too small to measure: at least 4 KiB"));
  return bench;
}

PathPolicy PolicyFor(const Workbench& bench) {
  return bench.file.direct() ? PathPolicy::kDirectOnly : PathPolicy::kDefault;
}

void Finish(const Workbench& bench, const SweepResult& sweep, const Advice& advice, TuneReport& report) {
  for (const TunePoint& point : sweep.points) *report.add_points() = point;
  report.set_path(sweep.paths.path());
  report.set_reason(sweep.paths.reason());
  report.set_recommended(advice.recommended);
  if (advice.gain_over_default.has_value()) report.set_gain_over_default(*advice.gain_over_default);
  report.set_nothing_gained(advice.nothing_gained);
  report.set_advice(advice.text);
  if (auto knee = Knee(CurveOf(sweep.points))) report.set_knee(*knee);
  if (!bench.file.direct())
    report.add_notes("this file is staged, so the curve is the page cache's as much as the device's");
  if (!bench.meter.why_not().empty()) report.add_notes("no CPU time of the daemon: " + bench.meter.why_not());
}

absl::StatusOr<TuneReport> TuneDepth(const Context& context, const TuneOptions& options) {
  Bytes chunk = *ParseSize(options.chunk);
  auto bench = OpenBench(context, options, chunk * kDeepestQueue);
  if (!bench.ok()) return bench.status();
  chunk = std::min(ChunkFor(bench->file_bytes(), chunk), Bytes(bench->memory.size()));
  struct stat info = {};
  fstat(bench->fd.get(), &info);
  uint64_t channels = DeviceChannels("/sys", info.st_dev);
  uint64_t blocks = options.blocks > 0 ? options.blocks : bench->setting.pool.blocks_total();
  TuneReport report;
  report.set_what("queue-depth");
  report.set_file(options.file);
  report.set_start(StartingDepth(options.streams, blocks, channels));
  report.set_start_formula(absl::StrCat("2 x ", options.streams, " streams x ", blocks, " blocks / ", channels,
                                        " channels = ", report.start(), " (from 1 to ", kDeepestQueue, ")"));
  report.set_default_setting(kDefaultDepth);
  report.set_rounds(options.rounds);
  std::vector<SweepPoint> points;
  for (uint64_t depth : DepthSteps(kDeepestQueue, report.start())) {
    points.push_back({depth,
                      {.chunk = chunk,
                       .depth = static_cast<uint32_t>(depth),
                       .policy = PolicyFor(*bench),
                       .random = options.random}});
  }
  auto sweep = Sweep(*bench, points, options.rounds, absl::Seconds(options.seconds), /*staged=*/false);
  if (!sweep.ok()) return sweep.status();
  Finish(*bench, *sweep, AdviseDepth(CurveOf(sweep->points), kDefaultDepth), report);
  uint64_t buffers = bench->memory.size() / chunk.count();
  if (buffers < kDeepestQueue)
    report.add_notes(absl::StrCat("beyond ", buffers, " in flight, reads share memory: the pool has no more free"));
  return report;
}

absl::StatusOr<TuneReport> TuneChunk(const Context& context, const TuneOptions& options) {
  auto bench = OpenBench(context, options, Bytes(kLargestChunk * 4));
  if (!bench.ok()) return bench.status();
  TuneReport report;
  report.set_what("chunk");
  report.set_file(options.file);
  report.set_default_setting(kDefaultChunk);
  report.set_rounds(options.rounds);
  std::vector<SweepPoint> points;
  for (uint64_t chunk = kSmallestChunk; chunk <= kLargestChunk; chunk *= 4) {
    if (chunk > bench->file_bytes() || chunk > bench->memory.size()) break;
    points.push_back({chunk,
                      {.chunk = Bytes(chunk),
                       .depth = static_cast<uint32_t>(std::min<uint64_t>(kChunkDepth, bench->memory.size() / chunk)),
                       .policy = PolicyFor(*bench),
                       .random = options.random}});
  }
  auto sweep = Sweep(*bench, points, options.rounds, absl::Seconds(options.seconds), bench->file.direct());
  if (!sweep.ok()) return sweep.status();
  Finish(*bench, *sweep, AdviseChunk(CurveOf(sweep->points), kDefaultChunk), report);
  if (auto from = DirectPaysFrom(sweep->points)) {
    report.set_direct_pays_from(*from);
    report.add_notes(absl::StrCat("direct is faster than staged from ", HumanSize(*from),
                                  " on: what is smaller is better batched (ub::Batcher) or left staged "
                                  "(min_direct_bytes in the configuration)"));
  }
  if (points.empty() || points.back().setting < kLargestChunk)
    report.add_notes("larger chunks were left out: the file or the free memory has no room for them");
  return report;
}

using Measure = absl::StatusOr<TuneReport> (*)(const Context&, const TuneOptions&);

ExitCode Run(const Context& context, const TuneOptions& options, Measure measure) {
  uint64_t start = NowNs();
  auto report = measure(context, options);
  if (!report.ok()) return Fail(context, report.status());
  report->set_seconds(SecondsSince(start));
  return Print(context, *report, Text(*report));
}

void AddShared(CLI::App& command, TuneOptions& options) {
  command.add_option("--file", options.file, "A regular file like those that the job reads")
      ->required()
      ->type_name("FILE");
  command.add_option("--pool", options.pool, "Into this pool (default: the first one)")->type_name("NAME");
  command.add_option("--seconds", options.seconds, "How long each point is measured in each round")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command.add_option("--rounds", options.rounds, "Rounds over the whole curve")
      ->check(CLI::Range(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--random", options.random, "Read chunks in random order");
}

}  // namespace

void AddTuneCommands(CommandLine& line) {
  CLI::App& group = line.Group("tune", "Find good settings for this machine; changes nothing");
  auto depth_options = std::make_shared<TuneOptions>();
  CLI::App& depth = line.Command(group, "queue-depth", "How many transfers to keep in flight",
                                 [depth_options](const Context& c) { return Run(c, *depth_options, TuneDepth); });
  AddShared(depth, *depth_options);
  depth.add_option("--chunk", depth_options->chunk, "Size of one read")
      ->check(SizeValue())
      ->type_name("SIZE")
      ->capture_default_str();
  depth.add_option("--streams", depth_options->streams, "Streams that the job runs at once")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->capture_default_str();
  depth.add_option("--blocks", depth_options->blocks, "Blocks that the job leases (default: the pool's)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  auto chunk_options = std::make_shared<TuneOptions>();
  CLI::App& chunk = line.Command(group, "chunk", "How much to read at once",
                                 [chunk_options](const Context& c) { return Run(c, *chunk_options, TuneChunk); });
  AddShared(chunk, *chunk_options);
}

}  // namespace ub::ctl
