#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/load/plain_load.h"
#include "client/ubctl/load/positions.h"
#include "proto/wire/error.h"
#include "proto/wire/unique_fd.h"

namespace ub::ctl {
namespace {

absl::Status ReadWhole(int fd, absl::Span<std::byte> buffer, uint64_t at) {
  while (!buffer.empty()) {
    ssize_t got = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, absl::StrCat("read the file at ", at));
    if (got == 0) return absl::AbortedError("the file shrank while it was read");
    buffer.remove_prefix(static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadResult> RunTraditional(int fd, absl::Span<std::byte> wanted, const LoadPlan& plan,
                                          const CpuMeter& meter) {
  // A description of its own: read-ahead adapts to the reader of a description.
  UniqueFd own(open(absl::StrCat("/proc/self/fd/", fd).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!own.valid() || fstat(own.get(), &info) != 0) return ErrnoError(errno, "open the file once more");
  uint64_t chunk = plan.chunk.count();
  uint64_t chunks = static_cast<uint64_t>(info.st_size) / chunk;
  if (chunks == 0 || wanted.size() < chunk)
    return absl::FailedPreconditionError("the file or the memory is smaller than one chunk");
  Positions positions(chunk, chunks, plan.random, plan.seed);
  std::vector<std::byte> heap(chunk);
  uint64_t buffers = wanted.size() / chunk;
  LoadResult result;
  CpuTime before = meter.Now();
  uint64_t start = NowNs();
  uint64_t last = start;
  while ((plan.bytes.count() == 0 || result.bytes < plan.bytes.count()) &&
         absl::Nanoseconds(last - start) < plan.at_most) {
    if (absl::Status status = ReadWhole(own.get(), absl::MakeSpan(heap), positions.Next()); !status.ok()) return status;
    std::memcpy(wanted.data() + result.transfers % buffers * chunk, heap.data(), chunk);
    uint64_t now = NowNs();
    result.latency.Add(now - last);
    last = now;
    result.bytes += chunk;
    ++result.transfers;
  }
  result.ns = last - start;
  result.cpu = meter.Now() - before;
  return result;
}

}  // namespace ub::ctl
