#include "client/ubctl/bench/setting.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ubctl/admin.h"

namespace ub::ctl {
namespace {

// "value" of the first line "key : value" of a file of /proc; "" when there is none.
std::string ProcValue(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return {};
}

uint64_t ProcNumber(const char* path, const std::string& key) {
  std::string value = ProcValue(path, key);
  uint64_t number = 0;
  return absl::SimpleAtoi(value.substr(0, value.find(' ')), &number) ? number : 0;
}

}  // namespace

absl::StatusOr<BenchSetting> MakeSetting(const Context& context, const std::string& pool, Bytes least) {
  Deadline deadline = context.AnswerDeadline();
  auto admin = Admin::Connect(context.runtime_dir, deadline);
  if (!admin.ok()) return admin.status();
  auto status = (*admin)->Call(&Admin::Stub::GetStatus, v1::GetStatusRequest(), deadline);
  if (!status.ok()) return status.status();
  auto pools = (*admin)->Call(&Admin::Stub::ListPools, v1::ListPoolsRequest(), deadline);
  if (!pools.ok()) return pools.status();
  for (const v1::Pool& candidate : pools->pools()) {
    if (!pool.empty() && candidate.name() != pool) continue;
    uint64_t bytes = candidate.blocks_total() * candidate.block_bytes();
    if (bytes < least.count()) {
      return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kNeverSatisfiable,
                       absl::StrCat("pool ", candidate.name(), " has ", bytes, " bytes; the bench leases ",
                                    least.count(), ": configure more blocks, or name another pool"));
    }
    return BenchSetting{.context = context, .pool = candidate, .status = *status};
  }
  return MakeError(absl::StatusCode::kNotFound, Reason::kNoSuchPool,
                   absl::StrCat("no pool \"", pool, "\"; 'ubctl pools' lists them"));
}

Machine DescribeMachine(const BenchSetting& setting) {
  utsname name = {};
  uname(&name);
  Machine machine;
  machine.set_cpu(ProcValue("/proc/cpuinfo", "model name"));
  machine.set_cpus(static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  machine.set_kernel(name.release);
  machine.set_memory_bytes(ProcNumber("/proc/meminfo", "MemTotal:") * 1024);
  machine.set_huge_pages_total(ProcNumber("/proc/meminfo", "HugePages_Total:"));
  machine.set_huge_pages_free(ProcNumber("/proc/meminfo", "HugePages_Free:"));
  machine.set_pool(setting.pool.name());
  machine.set_block_bytes(setting.pool.block_bytes());
  machine.set_page_bytes(setting.pool.page_bytes());
  machine.set_daemon_version(setting.status.version());
  machine.set_uid(getuid());
  return machine;
}

}  // namespace ub::ctl
