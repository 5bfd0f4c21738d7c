#include "daemon/memory/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// No machine has more nodes than this (the kernel's own upper bound is 1024).
constexpr int kMaxNodes = 1024;

}  // namespace

std::vector<int> ParseNodeList(std::string_view text) {
  std::vector<int> nodes;
  absl::string_view list(text.data(), text.size());
  for (absl::string_view part : absl::StrSplit(list, absl::ByAnyChar(",\n "), absl::SkipEmpty())) {
    std::pair<absl::string_view, absl::string_view> range = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0;
    if (!absl::SimpleAtoi(range.first, &first)) continue;
    int last = first;
    if (!range.second.empty() && !absl::SimpleAtoi(range.second, &last)) continue;
    for (int node = std::max(first, 0); node <= std::min(last, kMaxNodes - 1); ++node) nodes.push_back(node);
  }
  return nodes;
}

std::vector<int> MemoryNodes(const SystemFiles& files) {
  for (const char* name : {"has_memory", "online"}) {
    std::optional<std::string> text = files.Read(absl::StrCat("/sys/devices/system/node/", name));
    if (!text) continue;
    std::vector<int> nodes = ParseNodeList(*text);
    if (!nodes.empty()) return nodes;
  }
  return {0};
}

absl::Status CheckNode(const SystemFiles& files, const std::string& pool, int node) {
  std::vector<int> nodes = MemoryNodes(files);
  if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) return absl::OkStatus();
  std::string known = absl::StrJoin(nodes, ", ");
  return ub::MakeError(absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig,
                       absl::StrCat("pool ", pool, ": NUMA node ", node,
                                    " does not exist or has no memory; nodes with memory here: ", known,
                                    ". Set numa_node to one of them, or leave it out"),
                       {{"pool", pool}, {"node", absl::StrCat(node)}, {"nodes", known}});
}

absl::Status BindToNode(void* address, size_t bytes, int node) {
  unsigned long mask[kMaxNodes / (CHAR_BIT * sizeof(unsigned long)) + 1] = {};
  constexpr unsigned long kBits = CHAR_BIT * sizeof(unsigned long);
  if (node < 0 || node >= kMaxNodes) return ub::ErrnoError(EINVAL, absl::StrCat("mbind to NUMA node ", node));
  mask[static_cast<unsigned long>(node) / kBits] = 1UL << (static_cast<unsigned long>(node) % kBits);
  // The kernel reads one bit less than it is told.
  if (::syscall(SYS_mbind, address, bytes, MPOL_BIND, mask, kMaxNodes + 1UL, 0UL) == 0) return absl::OkStatus();
  return ub::ErrnoError(errno, absl::StrCat("mbind to NUMA node ", node));
}

}  // namespace ubd
