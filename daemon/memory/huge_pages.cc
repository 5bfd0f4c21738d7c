#include "daemon/memory/huge_pages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

std::string PoolDirectory(ub::Bytes page_size, std::optional<int> node) {
  std::string name = absl::StrCat("hugepages-", page_size.count() / 1024, "kB/");
  if (!node) return "/sys/kernel/mm/hugepages/" + name;
  return absl::StrCat("/sys/devices/system/node/node", *node, "/hugepages/", name);
}

}  // namespace

std::optional<HugePageCounts> ReadHugePages(const SystemFiles& files, ub::Bytes page_size, std::optional<int> node) {
  const std::string all = PoolDirectory(page_size, std::nullopt);
  std::optional<uint64_t> total = files.ReadNumber(all + "nr_hugepages");
  std::optional<uint64_t> free = files.ReadNumber(all + "free_hugepages");
  if (!total || !free) return std::nullopt;
  uint64_t reserved = files.ReadNumber(all + "resv_hugepages").value_or(0);
  HugePageCounts counts{*total, *free - std::min(*free, reserved), all + "free_hugepages"};
  if (!node) return counts;
  // Reservations belong to no node; so a node has what it has free, but never more than the machine has unreserved.
  const std::string here = PoolDirectory(page_size, node);
  std::optional<uint64_t> node_total = files.ReadNumber(here + "nr_hugepages");
  std::optional<uint64_t> node_free = files.ReadNumber(here + "free_hugepages");
  if (!node_total || !node_free) return std::nullopt;
  return HugePageCounts{*node_total, std::min(*node_free, counts.free), here + "free_hugepages"};
}

std::string HugePageCure(ub::Bytes page_size, std::optional<int> node, uint64_t pages) {
  if (node || page_size != ub::MiB(2)) {
    return absl::StrCat("echo ", pages, " > ", PoolDirectory(page_size, node), "nr_hugepages");
  }
  return absl::StrCat("sysctl vm.nr_hugepages=", pages);
}

}  // namespace ubd
