#include "daemon/memory/memfd_backing.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "daemon/memory/numa.h"
#include "proto/wire/error.h"

// Newer than Debian 12's headers or missing in them.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace ubd {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// A phrase for errors: "memfd of pool p: ftruncate".
std::string At(const std::string& pool, const char* step) { return absl::StrCat("memfd of pool ", pool, ": ", step); }

absl::StatusOr<ub::UniqueFd> NewMemfd(const BackingSpec& spec, bool huge) {
  unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  if (huge) {
    flags |= MFD_HUGETLB | static_cast<unsigned>(std::countr_zero(spec.page_size.count())) << MFD_HUGE_SHIFT;
  }
  std::string name = "ubd:" + spec.pool.substr(0, 200);
  // Not executable where the kernel (6.3) knows the flag; vm.memfd_noexec may even demand it.
  int fd = ::memfd_create(name.c_str(), flags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create(name.c_str(), flags);
  if (fd < 0) return ub::ErrnoError(errno, At(spec.pool, "memfd_create"));
  return ub::UniqueFd(fd);
}

// Sized, private to this uid, sealed; then a fresh description of it, the only one.
absl::StatusOr<ub::UniqueFd> NewSealedMemfd(const BackingSpec& spec, bool huge) {
  absl::StatusOr<ub::UniqueFd> made = NewMemfd(spec, huge);
  if (!made.ok()) return made.status();
  if (::ftruncate(made->get(), static_cast<off_t>(spec.bytes.count())) != 0) {
    return ub::ErrnoError(errno, At(spec.pool, "ftruncate"));
  }
  if (::fchmod(made->get(), 0600) != 0) return ub::ErrnoError(errno, At(spec.pool, "fchmod"));
  if (::fcntl(made->get(), F_ADD_SEALS, kSeals) != 0) return ub::ErrnoError(errno, At(spec.pool, "F_ADD_SEALS"));
  return ReopenMemfd(made->get(), Access::kReadWrite);
}

}  // namespace

absl::StatusOr<ub::UniqueFd> ReopenMemfd(int fd, Access access) {
  std::string path = absl::StrCat("/proc/self/fd/", fd);
  int flags = (access == Access::kReadOnly ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK;
  int opened = ::open(path.c_str(), flags);
  if (opened >= 0) return ub::UniqueFd(opened);
  if (errno == EMFILE || errno == ENFILE) {
    return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kDaemonFdLimit,
                         "the daemon has no file descriptor left for another holder; raise its limit (LimitNOFILE=)");
  }
  return ub::ErrnoError(errno, "open of a memfd through /proc/self/fd");
}

absl::StatusOr<std::unique_ptr<MemfdBacking>> MemfdBacking::Create(const BackingSpec& spec) {
  const uint64_t base = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const bool huge = spec.page_size.count() > base;
  absl::StatusOr<ub::UniqueFd> fd = NewSealedMemfd(spec, huge);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<MemfdBacking> backing(new MemfdBacking());
  backing->fd_ = std::move(*fd);
  backing->bytes_ = spec.bytes;
  backing->page_size_ = spec.page_size;
  backing->pool_ = spec.pool;
  backing->huge_ = huge;
  const size_t bytes = spec.bytes.count();
  // For huge pages this also reserves them, or fails.
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, backing->fd_.get(), 0);
  if (map == MAP_FAILED) return ub::ErrnoError(errno, At(spec.pool, "mmap"));
  backing->witness_ = map;
  // A core dump must not carry tenants' bytes, and a child of the daemon has no use for the mapping.
  ::madvise(map, bytes, MADV_DONTDUMP);
  ::madvise(map, bytes, MADV_DONTFORK);
  if (spec.numa_node) {
    absl::Status bound = BindToNode(map, bytes, *spec.numa_node);
    if (!bound.ok() && spec.bind_must_work) return bound;
  }
  // Pages join the locked ones as they are populated, which is cheaper than locking them afterwards.
  if (spec.lock && !huge) {
    backing->locked_ = ::mlock2(map, bytes, MLOCK_ONFAULT) == 0;
    if (!backing->locked_ && spec.lock_must_work) return ub::ErrnoError(errno, At(spec.pool, "mlock"));
  }
  return backing;
}

absl::Status MemfdBacking::Populate() {
  const off_t bytes = static_cast<off_t>(bytes_.count());
  int result = 0;
  do {
    result = ::fallocate(fd_.get(), 0, 0, bytes);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return ub::ErrnoError(errno, At(pool_, "fallocate"));
  do {
    result = ::madvise(witness_, bytes_.count(), MADV_POPULATE_READ);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  // EFAULT here means "would be SIGBUS"; EINVAL is a kernel before 5.14, where a read maps the page that fallocate
  // made.
  if (errno != EINVAL) return ub::ErrnoError(errno == EFAULT ? ENOMEM : errno, At(pool_, "MADV_POPULATE_READ"));
  const volatile char* byte = static_cast<const volatile char*>(witness_);
  for (uint64_t at = 0; at < bytes_.count(); at += page_size_.count()) static_cast<void>(byte[at]);
  return absl::OkStatus();
}

absl::Status MemfdBacking::Register(Registry& registry) {
  absl::StatusOr<Registration> made = registry.Add(witness_, bytes_);
  if (!made.ok()) return made.status();
  registration_ = *std::move(made);
  return absl::OkStatus();
}

MemfdBacking::~MemfdBacking() {
  registration_ = Registration();  // while it is still mapped
  if (witness_ != nullptr) ::munmap(witness_, bytes_.count());
}

}  // namespace ubd
