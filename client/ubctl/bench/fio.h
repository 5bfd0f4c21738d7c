// fio as the peer of reads through a queue: the same file, size of read and depth, with io_uring, fixed buffers and
// O_DIRECT. NOT_FOUND: fio is not installed.
#ifndef UB_UBCTL_BENCH_FIO_H_
#define UB_UBCTL_BENCH_FIO_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ubctl/load/queue_load.h"

namespace ub::ctl {

struct FioResult {
  double bytes_per_s = 0;
  std::optional<double> cpu_s_per_gb;
};

// Reads the file behind `fd` for `time`, as `plan` says.
absl::StatusOr<FioResult> RunFio(int fd, const LoadPlan& plan, absl::Duration time);

// What fio prints with --output-format=json, warnings before it included.
absl::StatusOr<FioResult> ParseFio(const std::string& output);

// Runs a program of PATH and gives what it prints to stdout. NOT_FOUND: there is none. ABORTED: it failed.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& words);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_FIO_H_
