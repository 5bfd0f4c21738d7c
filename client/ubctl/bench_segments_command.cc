// bench segments: each piece of the path by itself.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/bench/segments.h"
#include "client/ubctl/bench_commands.h"
#include "client/ubctl/human.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/side_text.h"
#include "client/ubctl/table.h"

namespace ub::ctl {
namespace {

struct SegmentsOptions {
  std::string file;
  std::string pool;
  bool quick = false;
};

std::string ValueText(bool known, double value, const std::string& unit) {
  if (!known) return "-";
  return unit == "ns" ? HumanDuration(static_cast<uint64_t>(value)) : RateText(true, value);
}

std::string Text(const SegmentsReport& report) {
  Table table({{"SEGMENT"},
               {"IS", Align::kRight},
               {"EXPECTED", Align::kRight},
               {"RATIO", Align::kRight},
               {"EMPTY-POLLS", Align::kRight},
               {"CPU-CLIENT", Align::kRight},
               {"CPU-DAEMON", Align::kRight},
               {"VERDICT"}});
  std::string notes;
  for (const Segment& segment : report.segments()) {
    table.Add({segment.name(), ValueText(segment.has_value(), segment.value(), segment.unit()),
               ValueText(segment.has_expected(), segment.expected(), segment.unit()),
               segment.has_ratio() ? absl::StrFormat("%.2f", segment.ratio()) : "-",
               segment.has_empty_poll_share() ? absl::StrFormat("%.1f%%", segment.empty_poll_share() * 100) : "-",
               segment.has_client_cpu() ? absl::StrFormat("%.2f", segment.client_cpu()) : "-",
               segment.has_daemon_cpu() ? absl::StrFormat("%.2f", segment.daemon_cpu()) : "-", segment.verdict()});
    if (!segment.expected_from().empty())
      absl::StrAppend(&notes, segment.name(), ": expected from ", segment.expected_from(), "\n");
    if (segment.has_note()) absl::StrAppend(&notes, segment.name(), ": ", segment.note(), "\n");
  }
  for (const std::string& note : report.notes()) absl::StrAppend(&notes, "note: ", note, "\n");
  return absl::StrCat(table.Text(), "\n", notes);
}

ExitCode Run(const Context& context, const SegmentsOptions& options) {
  uint64_t start = NowNs();
  auto fd = OpenForReading(options.file);
  if (!fd.ok()) return Fail(context, fd.status());
  auto bench =
      Workbench::Open(context, *std::move(fd), {.pool = options.pool, .memory = MiB(64), .wait = context.timeout});
  if (!bench.ok()) return Fail(context, bench.status());
  SegmentsPlan plan;
  if (options.quick) plan = {.pairs = 1, .time = absl::Milliseconds(50), .slices = 4};
  SegmentsReport report;
  report.set_file(options.file);
  *report.mutable_machine() = DescribeMachine(bench->setting);
  *report.add_segments() = MemoryWrite(*bench, plan);
  *report.add_segments() = DeviceRead(*bench, plan);
  *report.add_segments() = CompletionHandling(*bench, plan);
  if (!bench->meter.why_not().empty()) report.add_notes("no CPU time of the daemon: " + bench->meter.why_not());
  report.set_seconds(SecondsSince(start));
  return Print(context, report, Text(report));
}

}  // namespace

void AddBenchSegments(CommandLine& line, CLI::App& bench) {
  auto options = std::make_shared<SegmentsOptions>();
  CLI::App& segments = line.Command(bench, "segments",
                                    "Time memory, device and completions each by itself, beside what is to be expected",
                                    [options](const Context& c) { return Run(c, *options); });
  segments.add_option("--file", options->file, "A regular file")->required()->type_name("FILE");
  segments.add_option("--pool", options->pool, "In this pool (default: the first one)")->type_name("NAME");
  segments.add_flag("--quick", options->quick, "Few samples: a look, no measurement");
}

}  // namespace ub::ctl
