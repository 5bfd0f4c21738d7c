// Closes descriptors of strangers without waiting for them. close() asks some file systems to flush, and waits beyond
// SIGKILL for one whose server never answers; a socket may linger. The descriptor leaves this process's table at once;
// what is stuck is a thread that nobody needs. Thread-safe.
#ifndef UBD_ENGINE_CLOSE_ASIDE_H_
#define UBD_ENGINE_CLOSE_ASIDE_H_

#include <cstddef>

#include "proto/wire/unique_fd.h"

namespace ubd {

// At most kMostClosers threads; with all of them stuck, further descriptors wait, open.
inline constexpr size_t kMostClosers = 64;
void CloseAside(ub::UniqueFd fd);
// Closes that have not returned yet, waiting ones included.
size_t ClosesUnderWay();

}  // namespace ubd

#endif  // UBD_ENGINE_CLOSE_ASIDE_H_
