#include "daemon/engine/queue_memory.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "proto/wire/error.h"

namespace ubd {
namespace {

// Sealed, so that no mapping of it can ever be cut short; 0600, so that another uid that gets hold of a path to it in
// /proc cannot open it.
absl::StatusOr<ub::UniqueFd> MakeMemfd(size_t bytes) {
  ub::UniqueFd fd(memfd_create("ubd-queue", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ub::ErrnoError(errno, "memfd_create for a queue");
  if (fchmod(fd.get(), 0600) != 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ub::ErrnoError(errno, "sizing and sealing the memory of a queue");
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<QueueMemory>> QueueMemory::Create(ub::wire::QueueLayout layout) {
  auto memory = std::unique_ptr<QueueMemory>(new QueueMemory());
  memory->layout_ = layout;
  absl::StatusOr<ub::UniqueFd> fd = MakeMemfd(layout.bytes());
  if (!fd.ok()) return fd.status();
  void* data = mmap(nullptr, layout.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd->get(), 0);
  if (data == MAP_FAILED) return ub::ErrnoError(errno, "mmap of a queue");
  memory->data_ = data;
  std::string path = "/proc/self/fd/" + std::to_string(fd->get());
  memory->client_memory_ = ub::UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory->client_memory_.valid()) return ub::ErrnoError(errno, "reopening the memory of a queue for its client");
  memory->event_ = ub::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!memory->event_.valid()) return ub::ErrnoError(errno, "eventfd for a queue");
  memory->client_event_ = ub::UniqueFd(fcntl(memory->event_.get(), F_DUPFD_CLOEXEC, 0));
  if (!memory->client_event_.valid()) return ub::ErrnoError(errno, "duplicating the eventfd of a queue");
  return memory;
}

QueueMemory::~QueueMemory() {
  if (data_ != nullptr) munmap(data_, layout_.bytes());
}

}  // namespace ubd
