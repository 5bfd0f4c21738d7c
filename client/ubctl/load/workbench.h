// What every measurement of transfers needs, opened once: the daemon's facts, a session, the file, memory to read into,
// and the CPU clocks. Move-only. Not thread-safe.
#ifndef UB_UBCTL_LOAD_WORKBENCH_H_
#define UB_UBCTL_LOAD_WORKBENCH_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/ubctl/bench/setting.h"
#include "client/ubctl/load/cpu_time.h"
#include "client/ubctl/load/queue_load.h"
#include "proto/wire/unique_fd.h"
#include "ub/client.h"
#include "ub/file.h"

namespace ub::ctl {

struct WorkbenchOptions {
  std::string pool;     // empty: the first one
  Bytes memory;         // wanted; at least one block is taken, at most half of what the pool has free
  absl::Duration wait;  // for memory
};

struct Workbench {
  BenchSetting setting;
  CpuMeter meter;
  std::unique_ptr<Client> client;
  UniqueFd fd;
  File file;
  Lease memory;

  // `fd`: a regular file or block device, opened for reading.
  static absl::StatusOr<Workbench> Open(const Context& context, UniqueFd fd, const WorkbenchOptions& options);

  absl::Duration patience() const;  // for one transfer
  QueueLoad Load() { return {*client, file, memory, meter, patience()}; }
  uint64_t file_bytes() const { return file.size().count(); }
};

// O_RDONLY, without waiting for a FIFO's writer. INVALID_ARGUMENT for what is no regular file.
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);

// A file without a name, filled with bytes that do not compress, written back: to measure on where none is given. It is
// gone with its descriptor.
absl::StatusOr<UniqueFd> MakeScratchFile(const std::string& directory, Bytes size);

// `wanted`, or for a smaller file the most whole 4 KiB that it has; 0 when it has less than that.
Bytes ChunkFor(uint64_t file_bytes, Bytes wanted);

}  // namespace ub::ctl

#endif  // UB_UBCTL_LOAD_WORKBENCH_H_
