#include "daemon/memory/sole_holder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "daemon/memory/memfd_backing.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

absl::Status Untrusted(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat("the kernel's sole-holder test (F_SETLEASE) ", what));
}

}  // namespace

void IgnoreLeaseSignals() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGIO, &ignore, nullptr);
}

bool IsSoleHolder(int fd) {
  if (::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return false;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return true;
}

absl::Status ProbeSoleHolderTest(int fd, size_t map_bytes) {
  errno = 0;
  if (!IsSoleHolder(fd)) {
    return Untrusted(absl::StrCat("fails on memory that nobody else holds (errno ", errno,
                                  "); /proc/sys/fs/leases-enable must be 1"));
  }
  for (ub::Access access : {ub::Access::kReadWrite, ub::Access::kReadOnly}) {
    absl::StatusOr<ub::UniqueFd> second = ReopenMemfd(fd, access);
    if (!second.ok()) return second.status();
    if (IsSoleHolder(fd)) return Untrusted("does not see a second descriptor");
    void* map = ::mmap(nullptr, map_bytes, PROT_READ, MAP_SHARED, second->get(), 0);
    if (map == MAP_FAILED) return ub::ErrnoError(errno, "mmap for the sole-holder probe");
    second->reset();
    bool blind = IsSoleHolder(fd);
    ::munmap(map, map_bytes);
    if (blind) return Untrusted("does not see a mapping whose descriptor is closed");
  }
  if (!IsSoleHolder(fd)) return Untrusted("still fails after the other holder let go");
  return absl::OkStatus();
}

}  // namespace ubd
