// bench acquire: the figures that ubd promises, all from one run on this machine.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/bench/boot.h"
#include "client/ubctl/bench/leases.h"
#include "client/ubctl/bench/reclaim.h"
#include "client/ubctl/bench/samples.h"
#include "client/ubctl/bench/sessions.h"
#include "client/ubctl/bench/slots.h"
#include "client/ubctl/bench_commands.h"
#include "client/ubctl/child.h"
#include "client/ubctl/commands.h"
#include "client/ubctl/human.h"
#include "client/ubctl/table.h"

namespace ub::ctl {
namespace {

struct BenchOptions {
  std::string pool;
  std::string ubd;
  uint64_t samples = 200;
  bool quick = false;
  bool full = false;
};

constexpr uint64_t kQuickSamples = 16;

Ratio FigureAtMost(std::string_view name, const Figure& figure, double limit) {
  Ratio ratio;
  ratio.set_name(std::string(name));
  if (figure.has_p50_ns()) ratio.set_value(static_cast<double>(figure.p50_ns()));
  return AtMost(ratio, limit);
}

Ratio ValueAtMost(std::string_view name, const Figure& figure, double limit) {
  Ratio ratio;
  ratio.set_name(std::string(name));
  if (figure.has_value()) ratio.set_value(figure.value());
  return AtMost(ratio, limit);
}

void AddShortFigures(const BenchSetting& setting, BenchReport& report) {
  Figure one = SlotTakeReturn(setting, "slot_take_return", 1);
  Figure two = SlotTakeReturn(setting, "slot_take_return_two_threads", 2);
  Figure warm = LeaseWarm(setting);
  *report.add_ratios() = FigureAtMost("slot_take_return p50_ns", one, 50);
  *report.add_ratios() = FigureAtMost("slot_take_return_two_threads p50_ns", two, 100);
  *report.add_ratios() = FigureAtMost("lease_warm p50_ns", warm, 1000);
  Ratio faults;
  faults.set_name("lease_warm page_faults");
  if (warm.has_page_faults()) faults.set_value(static_cast<double>(warm.page_faults()));
  *report.add_ratios() = AtMost(faults, 0);
  for (Figure* figure : {&one, &two, &warm}) *report.add_figures() = *figure;
}

// The promise is about pools of 2 MiB pages; with others the comparison is shown and nothing is met or missed.
Ratio OfHugePages(const BenchSetting& setting, Ratio ratio) {
  constexpr uint64_t kHugePage = uint64_t{2} << 20;
  ratio.set_must(ratio.must() + " with 2 MiB pages");
  if (setting.pool.page_bytes() != kHugePage) ratio.clear_met();
  return ratio;
}

absl::Status AddColdFigures(const BenchSetting& setting, BenchReport& report) {
  auto cold = LeaseColdRounds(setting);
  if (!cold.ok()) return cold.status();
  report.set_rounds(cold->rounds);
  for (Figure* figure : {&cold->lease_cold, &cold->rpc_null, &cold->allocate_4k, &cold->allocate_2m})
    *report.add_figures() = *figure;
  *report.add_ratios() =
      OfHugePages(setting, AtMost(P50Ratio("lease_cold/rpc_null", cold->lease_cold, cold->rpc_null), 3));
  *report.add_ratios() = OfHugePages(
      setting, AtLeast(P50Ratio("allocate_populate_pin_4k/lease_cold", cold->allocate_4k, cold->lease_cold), 50));
  *report.add_ratios() = OfHugePages(
      setting, AtLeast(P50Ratio("allocate_populate_pin_2m/lease_cold", cold->allocate_2m, cold->lease_cold), 8));
  return absl::OkStatus();
}

void AddFullFigures(const BenchSetting& setting, BenchReport& report) {
  // First: the other figures leave the daemon busy for a while.
  Figure idle = IdleWakeups(setting);
  *report.add_ratios() = ValueAtMost("idle_wakeups_per_s", idle, 3);
  *report.add_figures() = idle;
  constexpr double kMostOwnMemory = 100.0 * 1024 * 1024;
  Figure sessions = Sessions1000(setting);
  *report.add_ratios() = ValueAtMost("sessions_1000 bytes", sessions, kMostOwnMemory);
  *report.add_figures() = sessions;
  BootFigures boot = BootPerGib(setting);
  *report.add_ratios() = AtMost(P50Ratio("boot_per_gib/bare_touch_per_gib", boot.boot, boot.touch), 1.2);
  *report.add_figures() = boot.boot;
  *report.add_figures() = boot.touch;
}

ExitCode RunAcquire(const Context& context, const BenchOptions& options) {
  uint64_t start = NowNs();
  auto setting = MakeSetting(context, options.pool);
  if (!setting.ok()) return Fail(context, setting.status());
  setting->samples = options.quick ? kQuickSamples : options.samples;
  setting->ubd = options.ubd;
  BenchReport report;
  *report.mutable_machine() = DescribeMachine(*setting);
  AddShortFigures(*setting, report);
  if (absl::Status status = AddColdFigures(*setting, report); !status.ok()) return Fail(context, status);
  *report.add_figures() = ReclaimAfterKill(*setting);
  if (options.full) AddFullFigures(*setting, report);
  report.set_seconds(SecondsSince(start));
  return Print(context, report, BenchText(report));
}

// Children of the bench: hidden, as nobody else can talk to them.
void AddChildren(CommandLine& line) {
  struct ChildOptions {
    std::string pool;
    uint64_t sessions = 1;
  };
  auto options = std::make_shared<ChildOptions>();
  CLI::App& holder = line.Command("bench-holder", "",
                                  [options](const Context& c) { return HoldForBench(c, options->pool, kChildSocket); });
  CLI::App& sessions = line.Command("bench-sessions", "", [options](const Context& c) {
    return HoldSessionsForBench(c, options->pool, options->sessions, kChildSocket);
  });
  sessions.add_option("--sessions", options->sessions);
  for (CLI::App* child : {&holder, &sessions}) {
    child->add_option("--pool", options->pool);
    child->group("");
  }
}

}  // namespace

std::string BenchText(const BenchReport& report) {
  constexpr char kNone[] = "-";
  const Machine& machine = report.machine();
  std::string text = absl::StrCat(machine.cpu(), ", ", machine.cpus(), " CPUs, Linux ", machine.kernel(), "; pool ",
                                  machine.pool(), ": blocks of ", HumanSize(machine.block_bytes()), ", pages of ",
                                  HumanSize(machine.page_bytes()), "\n\n");
  Table figures({{"FIGURE"},
                 {"P50", Align::kRight},
                 {"P99", Align::kRight},
                 {"VALUE", Align::kRight},
                 {"SAMPLES", Align::kRight},
                 {"NOTE"}});
  for (const Figure& figure : report.figures()) {
    std::string value = figure.has_value() ? absl::StrFormat("%.3g %s", figure.value(), figure.unit()) : kNone;
    if (figure.has_page_faults()) value = absl::StrCat(figure.page_faults(), " faults");
    figures.Add({figure.name(), figure.has_p50_ns() ? HumanDuration(figure.p50_ns()) : kNone,
                 figure.has_p99_ns() ? HumanDuration(figure.p99_ns()) : kNone, value, absl::StrCat(figure.samples()),
                 figure.note()});
  }
  Table ratios({{"COMPARED"}, {"IS", Align::kRight}, {"MUST BE", Align::kRight}, {"MET"}});
  for (const Ratio& ratio : report.ratios()) {
    ratios.Add({ratio.name(), ratio.has_value() ? absl::StrFormat("%.4g", ratio.value()) : kNone, ratio.must(),
                ratio.has_met()     ? (ratio.met() ? "yes" : "no")
                : ratio.has_value() ? "not promised here"
                                    : "not measured"});
  }
  return absl::StrCat(text, figures.Text(), "\n", ratios.Text());
}

void AddBenchAcquire(CommandLine& line, CLI::App& bench) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App& acquire =
      line.Command(bench, "acquire", "Time slots, leases and calls, and what they replace; fills the pool for a while",
                   [options](const Context& c) { return RunAcquire(c, *options); });
  acquire.add_option("--pool", options->pool, "Measure this pool (default: the first one)")->type_name("NAME");
  CLI::Option* samples = acquire.add_option("--samples", options->samples, "Samples of each quick figure")
                             ->check(CLI::PositiveNumber)
                             ->capture_default_str()
                             ->type_name("N");
  acquire.add_flag("--quick", options->quick, "Few samples: a look, no measurement")->excludes(samples);
  acquire.add_flag("--full", options->full, "Also 1000 sessions, boot time and idle wake-ups; takes minutes");
  acquire.add_option("--ubd", options->ubd, "The daemon's program, for boot time (default: beside ubctl, else PATH)")
      ->type_name("FILE");
  AddChildren(line);
}

void AddBenchCommands(CommandLine& line) {
  CLI::App& bench = line.Group("bench", "Measure this machine");
  AddBenchAcquire(line, bench);
  AddBenchQueue(line, bench);
  AddBenchAb(line, bench);
  AddBenchSegments(line, bench);
}

}  // namespace ub::ctl
