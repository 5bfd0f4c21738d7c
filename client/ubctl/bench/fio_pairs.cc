#include "client/ubctl/bench/fio_pairs.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/fio.h"
#include "client/ubctl/bench/samples.h"
#include "client/ubctl/bench/sides.h"
#include "client/ubctl/human.h"
#include "client/ubctl/load/result.h"

namespace ub::ctl {
namespace {

struct Series {
  std::vector<double> ours;
  std::vector<double> fios;
  std::vector<double> ratios;
  void Add(double our, double fio) {
    ours.push_back(our);
    fios.push_back(fio);
    if (fio > 0) ratios.push_back(our / fio);
  }
};

struct Measured {
  Series throughput;
  Series cpu;
  absl::Status ours;  // why there is nothing
  absl::Status fios;
};

Figure ValueFigure(const std::string& name, const std::vector<double>& values, const char* unit,
                   const absl::Status& why_not, const std::string& note) {
  if (values.empty()) return NoFigure(name, why_not.ok() ? absl::UnavailableError("its peer failed") : why_not);
  Figure figure;
  figure.set_name(name);
  figure.set_value(Median(values));
  figure.set_unit(unit);
  figure.set_samples(values.size());
  figure.set_note(note);
  return figure;
}

Ratio MedianRatio(const std::string& name, const std::vector<double>& ratios) {
  Ratio ratio;
  ratio.set_name(name);
  if (!ratios.empty()) ratio.set_value(Median(ratios));
  return ratio;
}

Measured Measure(Workbench& bench, const FioPairsPlan& plan) {
  Measured measured;
  LoadPlan load = plan.load;
  load.policy = PathPolicy::kDirectOnly;
  load.at_most = plan.time;
  for (uint64_t pair = 0; pair < plan.pairs; ++pair) {
    auto ours = bench.Load().Run(load);
    measured.ours = ours.ok() ? CheckAllDirect(ours->paths) : ours.status();
    if (!measured.ours.ok()) return measured;
    auto fios = RunFio(bench.fd.get(), load, plan.time);
    measured.fios = fios.status();
    if (!fios.ok()) {
      measured.throughput.ours.push_back(ours->bytes_per_s());  // still worth telling
      return measured;
    }
    measured.throughput.Add(ours->bytes_per_s(), fios->bytes_per_s);
    auto cpu = ours->cpu.total_ns();
    if (cpu.has_value() && ours->bytes > 0 && fios->cpu_s_per_gb.has_value())
      measured.cpu.Add(static_cast<double>(*cpu) / static_cast<double>(ours->bytes), *fios->cpu_s_per_gb);
  }
  return measured;
}

}  // namespace

void AddFioPairs(Workbench& bench, const FioPairsPlan& plan, BenchReport& report) {
  Measured measured = Measure(bench, plan);
  std::string what = absl::StrCat(HumanSize(plan.load.chunk.count()), " at depth ", plan.load.depth);
  const std::string fio = "fio_" + plan.name;
  absl::Status no_cpu = !measured.ours.ok()   ? measured.ours
                        : !measured.fios.ok() ? measured.fios
                                              : absl::UnavailableError(bench.meter.why_not());
  *report.add_figures() = ValueFigure(plan.name, measured.throughput.ours, "bytes/s", measured.ours, what);
  *report.add_figures() =
      ValueFigure(fio, measured.throughput.fios, "bytes/s", measured.ours.ok() ? measured.fios : measured.ours,
                  what + ", io_uring, fixed buffers, O_DIRECT");
  *report.add_figures() =
      ValueFigure(plan.name + "_cpu", measured.cpu.ours, "s/GB", no_cpu, "of this process and the daemon together");
  *report.add_figures() = ValueFigure(fio + "_cpu", measured.cpu.fios, "s/GB", no_cpu, "as fio says");
  *report.add_ratios() =
      AtLeast(MedianRatio(absl::StrCat(plan.name, "/", fio), measured.throughput.ratios), plan.least_throughput);
  if (plan.most_cpu > 0) {
    *report.add_ratios() =
        AtMost(MedianRatio(absl::StrCat(plan.name, "_cpu/", fio, "_cpu"), measured.cpu.ratios), plan.most_cpu);
  }
}

}  // namespace ub::ctl
