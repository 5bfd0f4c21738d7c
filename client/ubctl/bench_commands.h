// The words under `bench`, one file each.
#ifndef UB_UBCTL_BENCH_COMMANDS_H_
#define UB_UBCTL_BENCH_COMMANDS_H_

#include "client/ubctl/command_line.h"
#include "client/ubctl/report.pb.h"

namespace ub::ctl {

void AddBenchAcquire(CommandLine& line, CLI::App& bench);
void AddBenchQueue(CommandLine& line, CLI::App& bench);
void AddBenchAb(CommandLine& line, CLI::App& bench);
void AddBenchSegments(CommandLine& line, CLI::App& bench);

// Figures and ratios as two tables.
std::string BenchText(const BenchReport& report);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_COMMANDS_H_
