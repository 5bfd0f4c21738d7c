#include "client/src/local_io.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ub {
namespace {

using wire::CompletionEntry;
using wire::MemoryKind;
using wire::TransferError;

// The kernel's own limit is a little below 2 GiB.
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

uint64_t NowNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

TransferError ErrorFor(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return TransferError::kNoSpace;
    case EFAULT:  // a hole in the lease
      return TransferError::kMemoryTampered;
    default:
      return TransferError::kDeviceError;
  }
}

void Fail(CompletionEntry& done, int error) {
  done.error = static_cast<uint8_t>(ErrorFor(error));
  done.detail = static_cast<uint16_t>(error);
}

TransferError Check(const wire::SubmitEntry& entry, const FileImpl& file, const LocalMemory& memory,
                    wire::PathPolicy policy) {
  bool read = entry.op == static_cast<uint8_t>(wire::Op::kRead);
  if (memory.ended) return TransferError::kNoSuchLease;
  if (entry.offset > memory.size || entry.length > memory.size - entry.offset) return TransferError::kOutOfRange;
  if (entry.target_offset > INT64_MAX || entry.length > INT64_MAX - entry.target_offset)
    return TransferError::kOutOfRange;
  bool allowed = read ? memory.writable && file.facts().readable : file.facts().writable;
  if (!allowed) return TransferError::kReadOnly;
  return policy == wire::PathPolicy::kDirectOnly ? TransferError::kPathUnavailable : TransferError::kOk;
}

void Move(const wire::SubmitEntry& entry, int fd, std::byte* at, CompletionEntry& done) {
  bool read = entry.op == static_cast<uint8_t>(wire::Op::kRead);
  while (done.bytes < entry.length) {
    size_t want = std::min(entry.length - done.bytes, kMostAtOnce);
    auto where = static_cast<off_t>(entry.target_offset + done.bytes);
    ssize_t moved = read ? ::pread(fd, at + done.bytes, want, where) : ::pwrite(fd, at + done.bytes, want, where);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) Fail(done, errno);
    if (moved <= 0) return;  // 0: the end of the file
    done.bytes += static_cast<uint64_t>(moved);
  }
}

}  // namespace

CompletionEntry RunLocally(const wire::SubmitEntry& entry, const FileImpl& file, const LocalMemory& memory,
                           wire::PathPolicy policy) {
  CompletionEntry done = {};
  uint64_t begin = NowNs();
  if (entry.op == static_cast<uint8_t>(wire::Op::kFsync)) {
    if (::fdatasync(file.fd()) != 0) Fail(done, errno);
  } else {
    bool read = entry.op == static_cast<uint8_t>(wire::Op::kRead);
    done.from = static_cast<uint8_t>(read ? MemoryKind::kFile : MemoryKind::kHost);
    done.to = static_cast<uint8_t>(read ? MemoryKind::kHost : MemoryKind::kFile);
    TransferError bad = Check(entry, file, memory, policy);
    done.error = static_cast<uint8_t>(bad);
    if (bad == TransferError::kPathUnavailable) done.path_reason = static_cast<uint8_t>(file.facts().why_not);
    if (bad != TransferError::kOk) return done;
    done.path = static_cast<uint8_t>(wire::Path::kStaged);
    done.path_reason = static_cast<uint8_t>(file.facts().why_not);
    Move(entry, file.fd(), memory.data + entry.offset, done);
  }
  done.device_ns = NowNs() - begin;
  return done;
}

}  // namespace ub
