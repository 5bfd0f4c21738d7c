#include "daemon/memory/witness.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "daemon/memory/memfd_backing.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// Documentation/admin-guide/mm/pagemap.rst
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kSwapped = uint64_t{1} << 62;
constexpr size_t kEntry = sizeof(uint64_t);
// Entries of one read: the stack stays small and the kernel's mmap lock is not held for long.
constexpr size_t kBatch = 2048;

absl::Status ReadEntries(int fd, uint64_t first, uint64_t* entries, size_t count) {
  char* into = reinterpret_cast<char*>(entries);
  size_t left = count * kEntry;
  off_t at = static_cast<off_t>(first * kEntry);
  while (left > 0) {
    ssize_t got = ::pread(fd, into, left, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return ub::ErrnoError(got < 0 ? errno : EIO, "read of /proc/self/pagemap");
    into += got;
    left -= static_cast<size_t>(got);
    at += got;
  }
  return absl::OkStatus();
}

void Note(uint64_t entry, size_t offset, WitnessScan& scan) {
  ++scan.pages;
  if ((entry & kPresent) != 0) return;
  if ((entry & kSwapped) != 0) {
    ++scan.moving;
    return;
  }
  if (scan.absent++ == 0) scan.first_absent = offset;
}

}  // namespace

absl::StatusOr<Pagemap> Pagemap::Open() {
  ub::UniqueFd fd(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ub::ErrnoError(errno, "open of /proc/self/pagemap");
  return Pagemap(std::move(fd));
}

absl::StatusOr<WitnessScan> Pagemap::Scan(const void* address, size_t bytes, size_t page_size) const {
  const size_t base = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t first = reinterpret_cast<uintptr_t>(address) / base;
  // A huge page is there or not as a whole: one entry tells.
  const size_t stride = std::max(page_size / base, size_t{1});
  const size_t count = bytes / base;
  WitnessScan scan;
  uint64_t entries[kBatch];
  const size_t batch = stride > 1 ? 1 : kBatch;
  for (size_t at = 0; at<count; at += stride> 1 ? stride : batch) {
    size_t want = std::min(batch, count - at);
    if (absl::Status status = ReadEntries(fd_.get(), first + at, entries, want); !status.ok()) return status;
    for (size_t i = 0; i < want; ++i) Note(entries[i], (at + i) * base, scan);
  }
  return scan;
}

absl::Status ProbeWitness(const Pagemap& pagemap) {
  const size_t base = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  absl::StatusOr<std::unique_ptr<MemfdBacking>> scratch =
      MemfdBacking::Create({.pool = "probe", .bytes = Bytes(base), .page_size = Bytes(base)});
  if (!scratch.ok()) return scratch.status();
  if (absl::Status status = (*scratch)->Populate(); !status.ok()) return status;
  absl::StatusOr<WitnessScan> before = pagemap.Scan((*scratch)->witness(), base, base);
  if (!before.ok()) return before.status();
  if (::fallocate((*scratch)->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(base)) != 0) {
    return ub::ErrnoError(errno, "fallocate for the witness probe");
  }
  absl::StatusOr<WitnessScan> after = pagemap.Scan((*scratch)->witness(), base, base);
  if (!after.ok()) return after.status();
  if (before->complete() && after->absent == 1) return absl::OkStatus();
  return absl::FailedPreconditionError("/proc/self/pagemap does not show which pages of the daemon are present");
}

}  // namespace ubd
