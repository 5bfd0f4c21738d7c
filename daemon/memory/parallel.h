// Work that the machine's cores share.
#ifndef UBD_MEMORY_PARALLEL_H_
#define UBD_MEMORY_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace ubd {

// work(0) to work(count - 1), on as many threads as there are cores. After a failure none starts another piece; returns
// when all have ended, with the first failure.
absl::Status ForEachInParallel(size_t count, const std::function<absl::Status(size_t)>& work);

}  // namespace ubd

#endif  // UBD_MEMORY_PARALLEL_H_
