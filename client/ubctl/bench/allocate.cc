#include "client/ubctl/bench/allocate.h"

#include <linux/memfd.h>
#include <sys/mman.h>

#include <cerrno>

#include "client/ubctl/bench/samples.h"
#include "proto/wire/unique_fd.h"
#include "ub/error.h"

namespace ub::ctl {
namespace {

class Mapping {
 public:
  Mapping(int fd, size_t size)
      : size_(size), data_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0)) {}
  ~Mapping() {
    if (valid()) munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  bool valid() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  size_t size_;
  void* data_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Allocator>> Allocator::Create() {
  std::unique_ptr<Allocator> allocator(new Allocator());
  int error = io_uring_queue_init(4, &allocator->ring_, 0);
  if (error != 0) {
    allocator->ring_.ring_fd = -1;
    return ErrnoError(-error, "io_uring_queue_init (is io_uring allowed here? see kernel.io_uring_disabled)");
  }
  return allocator;
}

Allocator::~Allocator() {
  if (ring_.ring_fd >= 0) io_uring_queue_exit(&ring_);
}

absl::StatusOr<uint64_t> Allocator::Time(Bytes bytes, AllocatePages pages) {
  bool huge = pages == AllocatePages::k2MiB;
  uint64_t before = NowNs();
  UniqueFd fd(memfd_create("ubctl-bench", MFD_CLOEXEC | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0U)));
  if (!fd.valid()) return ErrnoError(errno, "memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes.count())) != 0) return ErrnoError(errno, "ftruncate of the memfd");
  Mapping mapping(fd.get(), bytes.count());
  if (!mapping.valid()) {
    return ErrnoError(
        errno, huge ? "map 64 MiB of 2 MiB pages (reserve 32 free ones in /proc/sys/vm/nr_hugepages)" : "map 64 MiB");
  }
  iovec vector = {.iov_base = mapping.data(), .iov_len = bytes.count()};
  int error = io_uring_register_buffers(&ring_, &vector, 1);
  uint64_t taken = NowNs() - before;
  if (error != 0)
    return ErrnoError(-error, "io_uring_register_buffers of 64 MiB (raise the memlock limit, see ulimit -l)");
  io_uring_unregister_buffers(&ring_);
  return taken;
}

}  // namespace ub::ctl
