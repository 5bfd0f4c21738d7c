#include "daemon/memory/cgroup_limits.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ubd {
namespace {

using Words = std::vector<std::string>;

// Beyond this a version 1 limit means "none" (it is rounded down from 2^63).
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

struct Hierarchy {
  std::string mount;     // where it is mounted
  std::string group;     // the process's group below it, "" or "/a/b"
  bool unified = false;  // version 2
  bool charges_huge = false;
};

bool HasController(const std::string& list, const std::string& name) {
  Words parts = absl::StrSplit(list, ',');
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

// The process's group in the hierarchy of `controller` (version 1), or in the unified one when it is empty.
std::optional<std::string> GroupOf(const std::string& proc_cgroup, const std::string& controller) {
  for (const std::string& line : Words(absl::StrSplit(proc_cgroup, '\n'))) {
    Words fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    bool match = controller.empty() ? fields[0] == "0" && fields[1].empty() : HasController(fields[1], controller);
    if (match) return fields[2] == "/" ? "" : fields[2];
  }
  return std::nullopt;
}

// Where the hierarchy is mounted, from /proc/self/mountinfo: "31 23 0:28 ROOT MOUNT OPTIONS [TAGS...] - TYPE SOURCE
// SUPER_OPTIONS".
std::optional<Hierarchy> FindHierarchy(const SystemFiles& files, const std::string& controller) {
  std::optional<std::string> mounts = files.Read("/proc/self/mountinfo");
  std::optional<std::string> groups = files.Read("/proc/self/cgroup");
  if (!mounts || !groups) return std::nullopt;
  std::optional<std::string> group = GroupOf(*groups, controller);
  if (!group) return std::nullopt;
  for (const std::string& line : Words(absl::StrSplit(*mounts, '\n'))) {
    std::pair<std::string, std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    Words left = absl::StrSplit(halves.first, ' ');
    Words right = absl::StrSplit(halves.second, ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    bool match =
        controller.empty() ? right[0] == "cgroup2" : right[0] == "cgroup" && HasController(right[2], controller);
    if (!match) continue;
    // A bind mount or a namespace shows only a part of the tree; what lies outside of it cannot be looked at.
    std::string below = *group;
    if (left[3] != "/") below = absl::StartsWith(below, left[3]) ? below.substr(left[3].size()) : "";
    if (absl::StartsWith(below, "/..")) below.clear();
    return Hierarchy{left[4], below, controller.empty(), HasController(right[2], "memory_hugetlb_accounting")};
  }
  return std::nullopt;
}

// The group's directory and those of all its ancestors, as far as they can be seen.
std::vector<std::string> Lineage(const Hierarchy& hierarchy) {
  std::vector<std::string> directories;
  std::string group = hierarchy.group;
  while (!group.empty()) {
    directories.push_back(hierarchy.mount + group + "/");
    group = group.substr(0, group.rfind('/'));
  }
  directories.push_back(hierarchy.mount + "/");
  return directories;
}

void AddLimit(const SystemFiles& files, const std::string& limit_file, const std::string& usage_file, uint64_t cache,
              std::vector<CgroupLimit>& limits) {
  std::optional<uint64_t> limit = files.ReadNumber(limit_file);
  std::optional<uint64_t> usage = files.ReadNumber(usage_file);
  if (!limit || !usage || *limit >= kUnlimited) return;
  uint64_t used = *usage - std::min(*usage, cache);
  limits.push_back({limit_file, *limit, *limit - std::min(*limit, used)});
}

uint64_t DroppableCache(const SystemFiles& files, const std::string& directory, const std::string& prefix) {
  std::optional<std::string> stat = files.Read(directory + "memory.stat");
  if (!stat) return 0;
  uint64_t cache = 0;
  for (const char* list : {"inactive_file", "active_file"}) cache += FindNumber(*stat, prefix + list).value_or(0);
  return cache;
}

void AddUnified(const SystemFiles& files, const Hierarchy& hierarchy, std::vector<CgroupLimit>& limits) {
  for (const std::string& directory : Lineage(hierarchy)) {
    uint64_t cache = DroppableCache(files, directory, "");
    for (const char* name : {"memory.max", "memory.high"}) {
      AddLimit(files, directory + name, directory + "memory.current", cache, limits);
    }
  }
}

std::string HugeName(ub::Bytes page_size) {
  uint64_t bytes = page_size.count();
  if (bytes >= ub::GiB(1).count()) return absl::StrCat("hugetlb.", bytes >> 30, "GB.");
  if (bytes >= ub::MiB(1).count()) return absl::StrCat("hugetlb.", bytes >> 20, "MB.");
  return absl::StrCat("hugetlb.", bytes >> 10, "KB.");
}

}  // namespace

std::vector<CgroupLimit> MemoryLimits(const SystemFiles& files) {
  std::vector<CgroupLimit> limits;
  if (std::optional<Hierarchy> unified = FindHierarchy(files, "")) AddUnified(files, *unified, limits);
  if (std::optional<Hierarchy> old = FindHierarchy(files, "memory")) {
    for (const std::string& directory : Lineage(*old)) {
      AddLimit(files, directory + "memory.limit_in_bytes", directory + "memory.usage_in_bytes",
               DroppableCache(files, directory, "total_"), limits);
    }
  }
  return limits;
}

std::vector<CgroupLimit> HugePageLimits(const SystemFiles& files, ub::Bytes page_size) {
  std::vector<CgroupLimit> limits;
  const std::string name = HugeName(page_size);
  if (std::optional<Hierarchy> unified = FindHierarchy(files, "")) {
    for (const std::string& directory : Lineage(*unified)) {
      AddLimit(files, directory + name + "max", directory + name + "current", 0, limits);
      AddLimit(files, directory + name + "rsvd.max", directory + name + "rsvd.current", 0, limits);
    }
    if (unified->charges_huge) AddUnified(files, *unified, limits);
  }
  if (std::optional<Hierarchy> old = FindHierarchy(files, "hugetlb")) {
    for (const std::string& directory : Lineage(*old)) {
      AddLimit(files, directory + name + "limit_in_bytes", directory + name + "usage_in_bytes", 0, limits);
      AddLimit(files, directory + name + "rsvd.limit_in_bytes", directory + name + "rsvd.usage_in_bytes", 0, limits);
    }
  }
  return limits;
}

}  // namespace ubd
