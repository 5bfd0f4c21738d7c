#include "daemon/memory/budget.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/memory/huge_pages.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

// Descriptors and mappings that the rest of the daemon needs: sockets, sessions, libraries, thread stacks.
constexpr uint64_t kFdHeadroom = 256;
constexpr uint64_t kMapHeadroom = 4096;

uint64_t Minus(uint64_t a, uint64_t b) { return a - std::min(a, b); }

std::string FreeMemoryCure(uint64_t missing) {
  return absl::StrCat("free or add ", ub::FormatSize(Bytes(missing)), " of memory");
}

}  // namespace

Budget* Budgets::Get(const std::string& limit, const std::string& unit, uint64_t left,
                     std::function<std::string(uint64_t)> cure) {
  return &budgets_.try_emplace(limit, Budget{limit, unit, left, std::move(cure)}).first->second;
}

std::vector<Draw> Budgets::DrawsFor(const HostPoolConfig& pool, Bytes page_size) {
  std::vector<Draw> draws;
  if (page_size.count() > static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) {
    AddHugePages(pool, page_size, draws);
  } else {
    AddSmallPages(pool, draws);
  }
  AddProcess(draws);
  return draws;
}

void Budgets::AddHugePages(const HostPoolConfig& pool, Bytes page_size, std::vector<Draw>& draws) {
  const uint64_t block = pool.spec.block_bytes.count();
  std::vector<std::optional<int>> scopes = {std::nullopt};
  if (pool.numa_node) scopes.push_back(pool.numa_node);
  for (std::optional<int> node : scopes) {
    std::optional<HugePageCounts> counts = ReadHugePages(files_, page_size, node);
    if (!counts) counts = HugePageCounts{0, 0, absl::StrCat("huge pages of ", ub::FormatSize(page_size))};
    uint64_t total = counts->total;
    auto cure = [page_size, node, total](uint64_t missing) {
      return HugePageCure(page_size, node, total + ub::PiecesFor(Bytes(missing), page_size));
    };
    draws.push_back({Get(counts->file, "bytes", counts->free * page_size.count(), cure), block});
  }
  AddGroups(HugePageLimits(files_, page_size), block, draws);
}

void Budgets::AddSmallPages(const HostPoolConfig& pool, std::vector<Draw>& draws) {
  const uint64_t block = pool.spec.block_bytes.count();
  const std::string meminfo = files_.Read("/proc/meminfo").value_or("");
  if (std::optional<uint64_t> available = FindNumber(meminfo, "MemAvailable")) {
    draws.push_back({Get("/proc/meminfo MemAvailable", "bytes", *available, FreeMemoryCure), block});
  }
  if (files_.ReadNumber("/proc/sys/vm/overcommit_memory") == 2) {
    uint64_t left =
        Minus(FindNumber(meminfo, "CommitLimit").value_or(0), FindNumber(meminfo, "Committed_AS").value_or(0));
    draws.push_back(
        {Get("/proc/meminfo CommitLimit", "bytes", left,
             [](uint64_t) { return std::string("sysctl vm.overcommit_memory=0, or a larger vm.overcommit_ratio"); }),
         block});
  }
  if (pool.numa_node) {
    std::string file = absl::StrCat("/sys/devices/system/node/node", *pool.numa_node, "/meminfo");
    if (std::optional<std::string> text = files_.Read(file)) {
      uint64_t left = 0;
      for (const char* key : {"MemFree", "Active(file)", "Inactive(file)", "SReclaimable"}) {
        left += FindNumber(*text, key).value_or(0);
      }
      draws.push_back({Get(file, "bytes", left, FreeMemoryCure), block});
    }
  }
  AddGroups(MemoryLimits(files_), block, draws);
  if (pool.lock_pages == Demand::kRequired) draws.push_back({Locked(), block});
}

Budget* Budgets::Locked() {
  uint64_t left = limits_.max_locked == UINT64_MAX ? UINT64_MAX : Minus(limits_.max_locked, limits_.locked);
  return Get("RLIMIT_MEMLOCK", "bytes", left,
             [](uint64_t) { return std::string("LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited"); });
}

void Budgets::AddGroups(const std::vector<CgroupLimit>& groups, uint64_t bytes, std::vector<Draw>& draws) {
  for (const CgroupLimit& group : groups) {
    uint64_t limit = group.limit;
    std::string file = group.file;
    auto cure = [limit, file](uint64_t missing) { return absl::StrCat("echo ", limit + missing, " > ", file); };
    draws.push_back({Get(file, "bytes", group.free, cure), bytes});
  }
}

void Budgets::AddProcess(std::vector<Draw>& draws) {
  uint64_t fds = limits_.max_fds;
  draws.push_back({Get("RLIMIT_NOFILE", "file descriptors", Minus(Minus(fds, limits_.open_fds), kFdHeadroom),
                       [fds](uint64_t missing) {
                         return absl::StrCat("LimitNOFILE=", fds + missing,
                                             " or more in the unit, or ulimit -n; or larger blocks");
                       }),
                   1});
  uint64_t maps = limits_.max_maps;
  draws.push_back({Get("/proc/sys/vm/max_map_count", "mappings", Minus(maps, kMapHeadroom),
                       [maps](uint64_t missing) {
                         return absl::StrCat("sysctl vm.max_map_count=", maps + missing, ", or larger blocks");
                       }),
                   1});
}

Fit FitOf(const std::vector<Draw>& draws) {
  Fit fit;
  for (const Draw& draw : draws) {
    uint64_t backings = draw.budget->left / draw.per_backing;
    if (fit.tightest != nullptr && backings >= fit.backings) continue;
    fit = {backings, &draw};
  }
  return fit;
}

void Claim(const std::vector<Draw>& draws, uint64_t backings) {
  for (const Draw& draw : draws) {
    if (draw.budget->left != UINT64_MAX) draw.budget->left -= draw.per_backing * backings;
  }
}

}  // namespace ubd
