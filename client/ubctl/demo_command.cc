// demo FILE: the main job in small. A producer leases blocks and has the file read into them through a queue, a
// consumer in another process hashes them in place. Then the same file is measured in each of the three ways.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/admin.h"
#include "client/ubctl/bench/sides.h"
#include "client/ubctl/child.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/demo/compare.h"
#include "client/ubctl/demo/consumer.h"
#include "client/ubctl/demo/producer.h"
#include "client/ubctl/human.h"
#include "client/ubctl/load/cpu_time.h"
#include "client/ubctl/monotonic.h"
#include "client/ubctl/side_text.h"
#include "client/ubctl/table.h"
#include "proto/wire/size_text.h"

namespace ub::ctl {
namespace {

constexpr char kConsumerCommand[] = "demo-consumer";

struct DemoOptions {
  std::string file;
  std::string pool;
  std::string chunk;
  bool no_compare = false;
};

const char* ReadOnlyText(const DemoReport& report) {
  if (!report.has_read_only_advisory()) return "nothing was shared";
  if (!report.read_only_advisory()) return "enforced by the kernel";
  return "advisory: you are root or have the daemon's uid, so the kernel cannot keep the consumer from writing";
}

std::string PathsText(const DemoReport& report) {
  std::string text = report.path();
  for (const PathShare& share : report.paths()) {
    if (share.reason().empty()) continue;
    absl::StrAppend(&text, "; ", HumanSize(share.bytes()), " staged: ", ExplainReason(share.reason()));
  }
  return text + (report.served_locally() ? "; read by this process" : "");
}

std::string Text(const DemoReport& report) {
  std::string rate = report.has_bytes_per_second()
                         ? absl::StrCat(" (", HumanSize(static_cast<uint64_t>(report.bytes_per_second())), "/s)")
                         : "";
  std::string copies =
      report.has_copies_per_byte()
          ? absl::StrFormat("%.3g per byte on the way into the lease; the consumer hashed in place (%.3g)",
                            report.copies_per_byte(), report.consumer_copies_per_byte())
          : "none: the file is empty";
  std::string text = KeyValueText({
      {"file", report.file()},
      {"bytes", absl::StrCat(report.bytes(), " (", HumanSize(report.bytes()), ")")},
      {"chunks", absl::StrCat(report.chunks(), " of ", HumanSize(report.chunk_bytes()), ", at most ",
                              report.most_in_flight(), " in flight")},
      {"seconds", absl::StrFormat("%.6f%s", report.seconds(), rate)},
      {"leases", absl::StrCat(report.leases(), " taken by the producer, ", report.attaches(),
                              " attached read-only by the consumer")},
      {"rpcs",
       absl::StrCat(report.rpcs(), " (producer ", report.producer_rpcs(), ", consumer ", report.consumer_rpcs(), ")")},
      {"path", PathsText(report)},
      {"cpu", report.has_cpu_s_per_gb()
                  ? absl::StrFormat("%.3f s per GB, of the producer and the daemon", report.cpu_s_per_gb())
                  : std::string("not known")},
      {"copies", copies},
      {"read-only", ReadOnlyText(report)},
      {"consumer's hash", report.consumer_hash()},
      {"file's own hash", absl::StrCat(report.file_hash(), " (", report.hash_algorithm(), ")")},
  });
  if (report.has_traditional()) {
    absl::StrAppend(
        &text, "\nthis file in each way, from a cold cache:\n",
        SidesText(
            {{"direct", &report.direct()}, {"staged", &report.staged()}, {"traditional", &report.traditional()}}));
  }
  if (report.has_compare_note()) absl::StrAppend(&text, "note: ", report.compare_note(), "\n");
  return text + (report.ok() ? "OK\n" : "FAILED: the consumer's hash is not the file's own\n");
}

// The demo itself: everything but the comparison after it.
absl::StatusOr<DemoReport> Pass(const Context& context, const DemoOptions& options, const SourceFile& file) {
  // The child first: it costs nothing if the daemon is away, and no lease is mapped yet.
  auto consumer = Child::Start(
      {"--runtime-dir", context.runtime_dir, "--timeout", absl::FormatDuration(context.timeout), kConsumerCommand});
  if (!consumer.ok()) return consumer.status();
  ConnectOptions connect;
  connect.runtime_dir = context.runtime_dir;
  connect.deadline = context.timeout;
  connect.name = "ubctl-demo-producer";
  auto client = Client::Connect(connect);
  if (!client.ok()) return client.status();
  auto status = AskDaemon(context, &Admin::Stub::GetStatus, v1::GetStatusRequest());
  if (!status.ok()) return status.status();
  CpuMeter meter(status->pid());
  DemoReport report;
  report.set_file(file.path());
  report.set_hash_algorithm("XXH3-128");
  CpuTime cpu_before = meter.Now();
  uint64_t start = NowNs();
  {
    Producer producer(**client, *consumer, file,
                      {.pool = options.pool,
                       .chunk = options.chunk.empty() ? Bytes(0) : *ParseSize(options.chunk),
                       .timeout = context.timeout});
    if (absl::Status passed = producer.Run(report); !passed.ok()) return passed;
  }
  report.set_seconds(SecondsSince(start));
  if (report.bytes() > 0 && report.seconds() > 0)
    report.set_bytes_per_second(static_cast<double>(report.bytes()) / report.seconds());
  if (auto cpu = (meter.Now() - cpu_before).total_ns(); cpu.has_value() && report.bytes() > 0)
    report.set_cpu_s_per_gb(static_cast<double>(*cpu) / static_cast<double>(report.bytes()));
  std::string ended = consumer->Reap();
  if (!ended.empty()) return absl::AbortedError(absl::StrCat("the consumer ", ended, " after its result"));
  return report;
}

absl::StatusOr<DemoReport> Demo(const Context& context, const DemoOptions& options) {
  auto file = SourceFile::Open(options.file);
  if (!file.ok()) return file.status();
  auto report = Pass(context, options, *file);
  if (!report.ok()) return report;
  auto own = file->HashAgain();
  if (!own.ok()) return own.status();
  report->set_file_hash(HashText(*own));
  report->set_ok(report->file_hash() == report->consumer_hash());
  if (!report->ok() && file->Changed())
    Note(absl::StrCat(file->path(), " was written to while it was read; run again when nobody does"));
  if (options.no_compare) {
    report->set_compare_note("not compared: --no-compare");
  } else {
    CompareWays(context, options.pool, *file, *report);
  }
  return report;
}

ExitCode RunDemo(const Context& context, const DemoOptions& options) {
  auto report = Demo(context, options);
  if (!report.ok()) return Fail(context, report.status());
  ExitCode printed = Print(context, *report, Text(*report));
  return report->ok() ? printed : ExitCode::kFailed;
}

}  // namespace

void AddDemoCommands(CommandLine& line) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App& demo = line.Command("demo", "Pass a file through leases from one process to another, and check it",
                                [options](const Context& c) { return RunDemo(c, *options); });
  demo.add_option("FILE", options->file, "A regular file of any size")->required();
  demo.add_option("--pool", options->pool, "From this pool (default: the first one)")->type_name("NAME");
  demo.add_option("--chunk", options->chunk, "How much of the file a lease takes (default: one block)")
      ->check(SizeValue())
      ->type_name("SIZE");
  demo.add_flag("--no-compare", options->no_compare, "Do not measure this file in each of the three ways afterwards");
  CLI::App& consumer =
      line.Command(kConsumerCommand, "", [](const Context& c) { return ServeProducer(c, kChildSocket); });
  consumer.group("");  // started by demo only: not in the help
}

}  // namespace ub::ctl
