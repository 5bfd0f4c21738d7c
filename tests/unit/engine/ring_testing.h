// Driving a ring to its completions.
#ifndef UBD_TESTS_UNIT_ENGINE_RING_TESTING_H_
#define UBD_TESTS_UNIT_ENGINE_RING_TESTING_H_

#include <poll.h>

#include <array>
#include <vector>

#include "daemon/engine/file_ring.h"

namespace ubd::testing {

// False after ten seconds, which only a lost wake-up takes. EINTR counts: the kernel may wake the thread so.
inline bool WaitReadable(int fd) {
  pollfd wanted = {fd, POLLIN, 0};
  return ::poll(&wanted, 1, 10000) != 0;
}

// Submits, and waits for at least `count` results; fewer where none come any more.
inline std::vector<FileResult> Finish(FileRing& ring, size_t count) {
  std::vector<FileResult> results;
  ring.Submit();
  for (;;) {
    std::array<FileResult, 64> some;
    const size_t got = ring.Reap(absl::MakeSpan(some));
    results.insert(results.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(got));
    if (results.size() >= count) return results;
    ring.Submit();
    if (got == 0 && !WaitReadable(ring.fd())) return results;
  }
}

}  // namespace ubd::testing

#endif  // UBD_TESTS_UNIT_ENGINE_RING_TESTING_H_
