#include "daemon/memory/own_range.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/memory/memfd_backing.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

// Missing in Debian 12's headers.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace ubd {
namespace {

constexpr uint64_t kSector = 512;  // the unit of st_blocks

absl::Status Bad(const char* field, const std::string& text) {
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadMemory, absl::StrCat(field, ": ", text),
                       {{"field", field}});
}

// What the kernel says about the client's memory.
struct Facts {
  bool writable = false;
  Bytes page_size;
  uint64_t size = 0;
  uint64_t allocated = 0;  // bytes that have pages, of the whole file
};

absl::StatusOr<bool> CheckDescriptor(int fd, Access access) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_GROW) == 0) {
    return Bad("fd", "must be sealed against shrinking and growing: F_ADD_SEALS with F_SEAL_SHRINK | F_SEAL_GROW");
  }
  const int mode = ::fcntl(fd, F_GETFL) & O_ACCMODE;
  if (mode == O_WRONLY) return Bad("fd", "must be open for reading too");
  const bool writable = mode == O_RDWR && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0;
  if (access == Access::kReadWrite && !writable) {
    return Bad("access", "read-write needs a descriptor that is open for writing and not sealed against it");
  }
  return writable;
}

absl::StatusOr<Facts> LookAt(int fd, bool writable) {
  struct stat status;
  struct statfs system;
  if (::fstat(fd, &status) != 0 || ::fstatfs(fd, &system) != 0) return ub::ErrnoError(errno, "fstat of a memfd");
  const bool huge = static_cast<uint64_t>(system.f_type) == HUGETLBFS_MAGIC;
  if (!huge && static_cast<uint64_t>(system.f_type) != TMPFS_MAGIC) return Bad("fd", "must be of tmpfs or hugetlbfs");
  Facts facts;
  facts.writable = writable;
  facts.page_size = Bytes(huge ? static_cast<uint64_t>(system.f_bsize) : static_cast<uint64_t>(::getpagesize()));
  facts.size = static_cast<uint64_t>(status.st_size);
  facts.allocated = static_cast<uint64_t>(status.st_blocks) * kSector;
  return facts;
}

absl::Status CheckRange(const Facts& facts, Bytes offset, Bytes bytes) {
  const std::string page = ub::FormatSize(facts.page_size);
  if (bytes == Bytes() || bytes > ub::GiB(1) || bytes % facts.page_size != Bytes()) {
    return Bad("bytes", absl::StrCat("must be a multiple of the memory's page size (", page, "), at most 1GiB"));
  }
  if (offset % facts.page_size != Bytes()) {
    return Bad("offset", absl::StrCat("must be a multiple of the memory's page size (", page, ")"));
  }
  if (offset.count() > facts.size || bytes.count() > facts.size - offset.count()) {
    return Bad("bytes", absl::StrCat("the range must lie within the memfd's ", facts.size, " bytes"));
  }
  return absl::OkStatus();
}

// SEEK_HOLE takes pages that fallocate made and nobody has written yet for holes, and knows of none in huge pages; a
// file that has as many pages as bytes is as good.
bool WhollyAllocated(const Facts& facts) { return facts.allocated >= facts.size; }

bool HasHole(int fd, const Facts& facts, Bytes offset, Bytes bytes) {
  if (WhollyAllocated(facts)) return false;
  if (facts.page_size.count() > static_cast<uint64_t>(::getpagesize())) return true;
  const off_t before = ::lseek(fd, 0, SEEK_CUR);  // the client's, if this is its description
  const off_t hole = ::lseek(fd, static_cast<off_t>(offset.count()), SEEK_HOLE);
  ::lseek(fd, before, SEEK_SET);
  return hole < 0 || static_cast<uint64_t>(hole) < offset.count() + bytes.count();
}

absl::Status Holes() {
  return Bad("fd", "every page must be allocated: write to each, or fallocate the whole memfd before it is sealed");
}

absl::Status Populate(void* address, Bytes bytes, bool writable) {
  int result = 0;
  do {
    result = ::madvise(address, bytes.count(), writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  // EFAULT means "would be SIGBUS": the client has taken pages away meanwhile, and there are no others.
  return errno == EFAULT ? Holes() : ub::ErrnoError(errno, "MADV_POPULATE of a client's memory");
}

}  // namespace

bool IsMemoryFile(int fd) { return ::fcntl(fd, F_GET_SEALS) >= 0; }

absl::StatusOr<std::unique_ptr<OwnRange>> OwnRange::Map(ub::UniqueFd fd, Bytes offset, Bytes bytes, Access access) {
  absl::StatusOr<bool> writable = CheckDescriptor(fd.get(), access);
  if (!writable.ok()) return writable.status();
  // A description of the daemon's own where the inode's mode allows it; else the client's does.
  absl::StatusOr<ub::UniqueFd> mine = ReopenMemfd(fd.get(), *writable ? Access::kReadWrite : Access::kReadOnly);
  if (mine.ok()) fd = *std::move(mine);
  absl::StatusOr<Facts> facts = LookAt(fd.get(), *writable);
  if (!facts.ok()) return facts.status();
  if (absl::Status bad = CheckRange(*facts, offset, bytes); !bad.ok()) return bad;
  if (HasHole(fd.get(), *facts, offset, bytes)) return Holes();
  // Without a reservation: all huge pages are there, and no others are wanted.
  void* map = ::mmap(nullptr, bytes.count(), facts->writable ? PROT_READ | PROT_WRITE : PROT_READ,
                     MAP_SHARED | MAP_NORESERVE, fd.get(), static_cast<off_t>(offset.count()));
  if (map == MAP_FAILED) return ub::ErrnoError(errno, "mmap of a client's memory");
  std::unique_ptr<OwnRange> range(new OwnRange(map, bytes));
  ::madvise(map, bytes.count(), MADV_DONTDUMP);
  ::madvise(map, bytes.count(), MADV_DONTFORK);
  if (absl::Status status = Populate(map, bytes, facts->writable); !status.ok()) return status;
  // Whoever counts pages beyond its file's end, or punches at this moment, gets no page of the daemon's for it.
  absl::StatusOr<Facts> after = LookAt(fd.get(), *writable);
  if (!after.ok()) return after.status();
  if (WhollyAllocated(*facts) && after->allocated > facts->allocated) return Holes();
  return range;
}

absl::Status OwnRange::Register(Registry& registry) {
  absl::StatusOr<Registration> made = registry.Add(address_, bytes_);
  if (!made.ok()) return made.status();
  registration_ = *std::move(made);
  return absl::OkStatus();
}

OwnRange::~OwnRange() {
  registration_ = Registration();  // while it is still mapped
  ::munmap(address_, bytes_.count());
}

}  // namespace ubd
