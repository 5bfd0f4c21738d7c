#include "client/src/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace ub {
namespace {

// User space ends at 2^47 on the usual x86-64 and 2^48 on arm64; a lease is far below.
constexpr uint64_t kAddressSpace = uint64_t{1} << 47;
constexpr uint64_t kAlignment = uint64_t{2} << 20;  // at least: lets the kernel use huge mappings where the pages are

absl::Status BadSizes(Bytes block_bytes, uint64_t blocks, Bytes page_bytes) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadField,
                   absl::StrCat("the daemon described a lease that cannot be mapped: ", blocks, " blocks of ",
                                block_bytes.count(), " bytes with pages of ", page_bytes.count()));
}

bool SizesAreSound(uint64_t block, uint64_t blocks, uint64_t page) {
  return std::has_single_bit(page) && page >= 4096 && page <= kAddressSpace && block > 0 && block % page == 0 &&
         blocks > 0 && blocks <= kAddressSpace / block;
}

}  // namespace

absl::Status CheckSealedMemfd(int fd, uint64_t bytes) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return ErrnoError(errno, "fstat of a file descriptor from the daemon");
  int seals = ::fcntl(fd, F_GET_SEALS);
  bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (sealed && static_cast<uint64_t>(info.st_size) == bytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, Reason::kBadField,
                   absl::StrCat("the daemon sent a file descriptor that is not safe to map: ",
                                sealed ? "wrong size" : "not sealed against shrinking", "; is the peer really ubd?"),
                   {{"size", absl::StrCat(info.st_size)}, {"wanted", absl::StrCat(bytes)}});
}

absl::StatusOr<Mapping> Mapping::Reserve(Bytes block_bytes, uint64_t blocks, Bytes page_bytes, Access access) {
  if (!SizesAreSound(block_bytes.count(), blocks, page_bytes.count())) return BadSizes(block_bytes, blocks, page_bytes);
  size_t size = block_bytes.count() * blocks;
  size_t alignment = std::max(page_bytes.count(), kAlignment);
  void* raw = ::mmap(nullptr, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return ErrnoError(errno, absl::StrCat("mmap of ", size, " bytes of address space for a lease"));
  std::byte* start = static_cast<std::byte*>(raw);
  size_t skip = (alignment - reinterpret_cast<uintptr_t>(start) % alignment) % alignment;
  if (skip > 0) ::munmap(start, skip);
  ::munmap(start + skip + size, alignment - skip);
  Mapping mapping;
  mapping.data_ = start + skip;
  mapping.size_ = size;
  mapping.block_bytes_ = block_bytes.count();
  mapping.access_ = access;
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      block_bytes_(other.block_bytes_),
      access_(other.access_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(block_bytes_, other.block_bytes_);
  std::swap(access_, other.access_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

absl::Status Mapping::MapBlock(uint32_t index, int fd) {
  if (index >= size_ / std::max<size_t>(block_bytes_, 1)) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kMalformedFrame,
                     "the daemon sent more blocks than the lease has");
  }
  if (absl::Status bad = CheckSealedMemfd(fd, block_bytes_); !bad.ok()) return bad;
  std::byte* at = data_ + size_t{index} * block_bytes_;
  int protection = access_ == Access::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  if (::mmap(at, block_bytes_, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    return ErrnoError(errno, "mmap of a block");
  }
  if (::madvise(at, block_bytes_, MADV_DONTFORK) != 0) return ErrnoError(errno, "madvise(MADV_DONTFORK) of a block");
  return absl::OkStatus();
}

absl::Status Mapping::MapRange(int fd, Bytes offset) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return ErrnoError(errno, "fstat of the memfd to register");
  int seals = ::fcntl(fd, F_GET_SEALS);
  auto end = static_cast<uint64_t>(info.st_size);
  // Else its pages could go away under the mapping: SIGBUS.
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || offset.count() > end || size_ > end - offset.count()) {
    return MakeError(absl::StatusCode::kInvalidArgument, Reason::kBadMemory,
                     "the memory to register must be a memfd that is sealed against shrinking and large enough",
                     {{"field", "fd"}});
  }
  int protection = access_ == Access::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  auto from = static_cast<off_t>(offset.count());
  if (::mmap(data_, size_, protection, MAP_SHARED | MAP_FIXED, fd, from) == MAP_FAILED)
    return ErrnoError(errno, "mmap of the memory to register");
  if (::madvise(data_, size_, MADV_DONTFORK) != 0) return ErrnoError(errno, "madvise(MADV_DONTFORK) of a lease");
  return absl::OkStatus();
}

absl::Status Mapping::Populate() {
  // Unlike MAP_POPULATE this tells of missing memory (a punched huge page) instead of leaving a SIGBUS for later.
  // Reading suffices: pages of a shared file mapping come in writable where the mapping is.
  if (::madvise(data_, size_, MADV_POPULATE_READ) == 0) return absl::OkStatus();
  if (errno == EINVAL) return absl::OkStatus();  // Linux before 5.14: pages come in on first touch
  return ErrnoError(errno, "mapping the pages of a lease");
}

}  // namespace ub
