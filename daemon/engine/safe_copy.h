// Memory to memory through the kernel: process_vm_readv on this process itself, at the speed of memcpy. A page that a
// client has punched away makes it fail with EFAULT where memcpy would die of SIGBUS. Thread-safe.
#ifndef UBD_ENGINE_SAFE_COPY_H_
#define UBD_ENGINE_SAFE_COPY_H_

#include <cstdint>

namespace ubd {

// Copies all or as much as could be: returns the bytes copied; less than `bytes` means that a page of either side was
// missing and could not be had (`error` then holds the errno, EFAULT). Ranges must not overlap.
uint64_t SafeCopy(void* to, const void* from, uint64_t bytes, int& error);

}  // namespace ubd

#endif  // UBD_ENGINE_SAFE_COPY_H_
