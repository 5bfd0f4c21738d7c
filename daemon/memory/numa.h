// NUMA nodes: which exist, and binding a mapping's memory to one. Thread-safe.
#ifndef UBD_MEMORY_NUMA_H_
#define UBD_MEMORY_NUMA_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/memory/system_files.h"

namespace ubd {

// "0-2,5" as {0, 1, 2, 5}; what is no number or range is skipped.
std::vector<int> ParseNodeList(std::string_view text);

// Nodes that have memory. {0} on a kernel without NUMA.
std::vector<int> MemoryNodes(const SystemFiles& files);

// INVALID_ARGUMENT/BAD_CONFIG, naming the nodes that exist, when `node` is none of them.
absl::Status CheckNode(const SystemFiles& files, const std::string& pool, int node);

// Pages of the shared object behind [address, address + bytes) will come from `node` only, whoever faults them in.
absl::Status BindToNode(void* address, size_t bytes, int node);

}  // namespace ubd

#endif  // UBD_MEMORY_NUMA_H_
