#include "client/ubctl/load/workbench.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ubctl/seed.h"
#include "client/ubctl/verify/pattern.h"
#include "proto/wire/error.h"

namespace ub::ctl {
namespace {

// A transfer that takes longer than this is stuck, whatever the timeout for answers is.
constexpr absl::Duration kLeastPatience = absl::Seconds(30);
constexpr Bytes kSector = KiB(4);

Bytes MemoryToTake(const v1::Pool& pool, Bytes wanted) {
  uint64_t half = pool.blocks_free() * pool.block_bytes() / 2;
  return Bytes(std::max(pool.block_bytes(), std::min(wanted.count(), half)));
}

absl::Status WriteAll(int fd, absl::Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return ErrnoError(errno, "write the file to measure on");
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Duration Workbench::patience() const { return std::max(setting.context.timeout, kLeastPatience); }

absl::StatusOr<Workbench> Workbench::Open(const Context& context, UniqueFd fd, const WorkbenchOptions& options) {
  auto setting = MakeSetting(context, options.pool, Bytes(1));
  if (!setting.ok()) return setting.status();
  auto client = ConnectFor(*setting, Bytes(0));
  if (!client.ok()) return client.status();
  auto file = File::FromDescriptor(**client, fd.get(), context.timeout);
  if (!file.ok()) return file.status();
  AcquireOptions acquire = Take(*setting, MemoryToTake(setting->pool, options.memory));
  acquire.wait = options.wait;
  acquire.cacheable = false;
  auto memory = (*client)->Acquire(acquire);
  if (!memory.ok()) return memory.status();
  CpuMeter meter(setting->status.pid());
  return Workbench{.setting = *std::move(setting),
                   .meter = std::move(meter),
                   .client = *std::move(client),
                   .fd = std::move(fd),
                   .file = *std::move(file),
                   .memory = *std::move(memory)};
}

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return ErrnoError(errno, absl::StrCat("open ", path));
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  return fd;
}

absl::StatusOr<UniqueFd> MakeScratchFile(const std::string& directory, Bytes size) {
  std::string path = directory + "/ubctl-bench-XXXXXX";
  UniqueFd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("make a file in ", directory));
  unlink(path.c_str());
  std::vector<std::byte> piece(MiB(1).count());
  for (uint64_t at = 0; at < size.count(); at += piece.size()) {
    FillPattern(RandomSeed(), at, absl::MakeSpan(piece));
    absl::Span<const std::byte> rest(piece.data(), std::min<uint64_t>(piece.size(), size.count() - at));
    if (absl::Status status = WriteAll(fd.get(), rest); !status.ok()) return status;
  }
  if (fsync(fd.get()) != 0) return ErrnoError(errno, "write back the file to measure on");
  return fd;
}

Bytes ChunkFor(uint64_t file_bytes, Bytes wanted) {
  if (file_bytes >= wanted.count()) return wanted;
  return Bytes(file_bytes / kSector.count() * kSector.count());
}

}  // namespace ub::ctl
