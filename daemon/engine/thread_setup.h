// Where an engine's thread runs, and with which priority.
#ifndef UBD_ENGINE_THREAD_SETUP_H_
#define UBD_ENGINE_THREAD_SETUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ubd {

struct ThreadPlan {
  std::string name;  // at most 15 characters
  std::optional<uint32_t> cpu;
  int nice = 0;
};

// INVALID_ARGUMENT/BAD_CONFIG names the first on which no thread of this process can run.
absl::Status CheckCpus(const std::vector<uint32_t>& cpus);

// For the calling thread. What the kernel refuses is logged.
void ApplyToThisThread(const ThreadPlan& plan);

}  // namespace ubd

#endif  // UBD_ENGINE_THREAD_SETUP_H_
