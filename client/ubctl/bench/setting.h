// What all benchmarks share: the daemon, the pool to measure, and how much to do.
#ifndef UB_UBCTL_BENCH_SETTING_H_
#define UB_UBCTL_BENCH_SETTING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/ubctl/output.h"
#include "client/ubctl/report.pb.h"
#include "ub/client.h"

namespace ub::ctl {

// The size that every lease figure is about.
inline constexpr Bytes kLeaseBytes = MiB(64);
// Operations of less than a microsecond are timed so many at a time: the clock itself costs more than one of them.
inline constexpr uint64_t kShortOps = 1000;

struct BenchSetting {
  const Context& context;
  v1::Pool pool;
  v1::Status status;
  uint64_t samples = 200;  // of lease_cold and rpc_null; others follow from it
  std::string ubd;         // program for boot_per_gib; empty: look for it
};

// The figures of an idle pool are about that pool's own memory; so options always name it.
inline AcquireOptions Take(const BenchSetting& setting, Bytes bytes = kLeaseBytes) {
  AcquireOptions options;
  options.pool = setting.pool.name();
  options.bytes = bytes;
  options.wait = setting.context.timeout;
  return options;
}

inline absl::StatusOr<std::unique_ptr<Client>> ConnectFor(const BenchSetting& setting, Bytes cache_limit) {
  ConnectOptions options;
  options.runtime_dir = setting.context.runtime_dir;
  options.deadline = setting.context.timeout;
  options.name = "ubctl-bench";
  options.cache_limit = cache_limit;
  return Client::Connect(options);
}

// Asks the daemon for the pool (the first one when `pool` is empty) and its status. The pool must have `least`.
absl::StatusOr<BenchSetting> MakeSetting(const Context& context, const std::string& pool, Bytes least = kLeaseBytes);
Machine DescribeMachine(const BenchSetting& setting);

}  // namespace ub::ctl

#endif  // UB_UBCTL_BENCH_SETTING_H_
