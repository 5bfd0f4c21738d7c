#include "client/ubctl/demo/compare.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "client/ubctl/bench/sides.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

constexpr Bytes kMostRead = MiB(128);
constexpr absl::Duration kLongest = absl::Milliseconds(500);  // of one measurement
constexpr absl::Duration kWaitForMemory = absl::Seconds(1);   // others may need it more than this

absl::StatusOr<SidesResult> Measure(const Context& context, const std::string& pool, const SourceFile& file) {
  UniqueFd fd(fcntl(file.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "duplicate the file's descriptor");
  SidesPlan plan = {.rounds = 2, .warm_up = 0, .at_most = kLongest, .need_direct = false};
  auto bench = Workbench::Open(context, std::move(fd),
                               {.pool = pool,
                                .memory = std::min(plan.chunk * plan.depth, Bytes(file.size())),
                                .wait = std::min(context.timeout, kWaitForMemory)});
  if (!bench.ok()) return bench.status();
  plan.chunk = std::min(ChunkFor(file.size(), plan.chunk), Bytes(bench->memory.size()));
  plan.bytes = plan.chunk * (std::min(kMostRead, Bytes(file.size())) / plan.chunk);
  return MeasureSides(*bench, plan);
}

}  // namespace

void CompareWays(const Context& context, const std::string& pool, const SourceFile& file, DemoReport& report) {
  if (ChunkFor(file.size(), MiB(1)).count() == 0) {
    report.set_compare_note("not compared: the file is too small to measure");
    return;
  }
  auto sides = Measure(context, pool, file);
  if (!sides.ok()) {
    report.set_compare_note(absl::StrCat("not compared: ", ErrorLine(sides.status())));
    return;
  }
  *report.mutable_direct() = sides->direct;
  *report.mutable_staged() = sides->staged;
  *report.mutable_traditional() = sides->traditional;
  if (!sides->warm_cache.empty()) report.set_compare_note(sides->warm_cache);
}

}  // namespace ub::ctl
