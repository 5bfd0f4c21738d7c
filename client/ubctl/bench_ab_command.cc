// bench ab: is direct worth it for this file, on this machine?
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/sides.h"
#include "client/ubctl/bench/verdict.h"
#include "client/ubctl/bench_commands.h"
#include "client/ubctl/human.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/side_text.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

constexpr Bytes kMostPerRound = MiB(512);

struct AbOptions {
  std::string file;
  std::string pool;
  std::string chunk = "1MiB";
  std::string bytes;
  double seconds = 0;
  uint32_t depth = 16;
  uint64_t rounds = 5;
};

std::string Text(const AbReport& report) {
  std::string text = absl::StrCat(report.file(), " (", report.file_system(), "): ", HumanSize(report.bytes_per_round()),
                                  " a round, chunks of ", HumanSize(report.chunk_bytes()), ", ", report.depth(),
                                  " in flight, ", report.rounds(), " rounds after ", report.warm_up_rounds(),
                                  " for warming up, ", report.cold_cache() ? "cold cache" : "CACHE NOT COLD", "\n\n");
  absl::StrAppend(
      &text,
      SidesText({{"direct", &report.direct()}, {"staged", &report.staged()}, {"traditional", &report.traditional()}}));
  absl::StrAppend(&text, "\n", report.verdict(), "\n", report.advice(), "\n");
  for (const std::string& note : report.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

absl::StatusOr<AbReport> Measure(const Context& context, const AbOptions& options) {
  uint64_t start = NowNs();
  auto fd = OpenForReading(options.file);
  if (!fd.ok()) return fd.status();
  SidesPlan plan = {.chunk = *ParseSize(options.chunk),
                    .depth = options.depth,
                    .rounds = options.rounds,
                    .at_least = absl::Seconds(options.seconds)};
  auto bench = Workbench::Open(context, *std::move(fd),
                               {.pool = options.pool, .memory = plan.chunk * plan.depth, .wait = context.timeout});
  if (!bench.ok()) return bench.status();
  plan.chunk = std::min(ChunkFor(bench->file_bytes(), plan.chunk), Bytes(bench->memory.size()));
  if (plan.chunk.count() == 0)
    return absl::FailedPreconditionError(absl::StrCat(options.file, " is too small to measure: at least 4 KiB"));
  Bytes most = options.bytes.empty() ? kMostPerRound : *ParseSize(options.bytes);
  plan.bytes = plan.chunk * std::max<uint64_t>(std::min(most, bench->file.size()) / plan.chunk, 1);
  auto sides = MeasureSides(*bench, plan);
  if (!sides.ok()) return sides.status();
  AbReport report;
  *report.mutable_direct() = sides->direct;
  *report.mutable_staged() = sides->staged;
  *report.mutable_traditional() = sides->traditional;
  Judge(report);
  report.set_cold_cache(sides->warm_cache.empty());
  if (!sides->warm_cache.empty())
    report.add_notes(absl::StrCat(sides->warm_cache, ". Staged and traditional look better than they are"));
  if (!bench->meter.why_not().empty()) report.add_notes("no CPU time of the daemon: " + bench->meter.why_not());
  report.set_file(options.file);
  report.set_file_system(bench->file.file_system());
  report.set_bytes_per_round(plan.bytes.count());
  report.set_chunk_bytes(plan.chunk.count());
  report.set_depth(plan.depth);
  report.set_rounds(sides->rounds);
  report.set_warm_up_rounds(plan.warm_up);
  *report.mutable_machine() = DescribeMachine(bench->setting);
  report.set_seconds(SecondsSince(start));
  return report;
}

ExitCode Run(const Context& context, const AbOptions& options) {
  auto report = Measure(context, options);
  if (!report.ok()) return Fail(context, report.status());
  return Print(context, *report, Text(*report));
}

}  // namespace

void AddBenchAb(CommandLine& line, CLI::App& bench) {
  auto options = std::make_shared<AbOptions>();
  CLI::App& ab = line.Command(bench, "ab", "Read a file directly, staged, and as programs do today, and compare",
                              [options](const Context& c) { return Run(c, *options); });
  ab.add_option("--file", options->file, "A regular file; large ones measure better")->required()->type_name("FILE");
  ab.add_option("--pool", options->pool, "Into this pool (default: the first one)")->type_name("NAME");
  ab.add_option("--rounds", options->rounds, "Rounds that count")
      ->check(CLI::Range(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  ab.add_option("--seconds", options->seconds, "Go on with further rounds until so long")
      ->check(CLI::Range(0, 86400))
      ->type_name("SECONDS")
      ->capture_default_str();
  ab.add_option("--bytes", options->bytes, "How much of the file a round reads (default: all, at most 512MiB)")
      ->check(SizeValue())
      ->type_name("SIZE");
  ab.add_option("--chunk", options->chunk, "Size of one read")
      ->check(SizeValue())
      ->type_name("SIZE")
      ->capture_default_str();
  ab.add_option("--depth", options->depth, "Reads in flight, direct and staged")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace ub::ctl
