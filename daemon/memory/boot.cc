#include "daemon/memory/boot.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/memory/huge_pages.h"
#include "daemon/memory/page_size.h"
#include "daemon/memory/parallel.h"
#include "proto/wire/error.h"
#include "proto/wire/mutex.h"

namespace ubd {
namespace {

// One backing to be made. The first pool.blocks of a pool go behind its blocks, the others to its reserve.
struct Item {
  PoolMemory* pool;
  uint32_t index;
  std::unique_ptr<MemfdBacking> backing;
};

absl::Status ForEach(std::vector<Item>& items, const std::function<absl::Status(Item&)>& work) {
  return ForEachInParallel(items.size(), [&](size_t i) { return work(items[i]); });
}

// A refusal for want of memory or descriptors, in spite of the preflight, as the preflight would have said it.
absl::Status Explain(const PoolMemory& pool, const SystemFiles& files, const absl::Status& status) {
  int error_number = 0;
  bool known = absl::SimpleAtoi(ub::DetailOf(status, "errno").value_or(""), &error_number);
  if (!known || (error_number != ENOMEM && error_number != ENOSPC && error_number != EAGAIN)) return status;
  const PoolPlan& plan = pool.plan();
  Shortage shortage;
  shortage.wanted = plan.config.spec.block_bytes.count() * (uint64_t{plan.blocks} + plan.reserve);
  std::string cause(status.message());
  if (plan.page_size == SmallPageSize()) {
    shortage.free = FindNumber(files.Read("/proc/meminfo").value_or(""), "MemAvailable").value_or(0);
    shortage.limit = absl::StrCat("/proc/meminfo MemAvailable (", cause, ")");
    shortage.cure = "free memory on this node, or raise the limit of the container";
  } else if (std::optional<HugePageCounts> counts = ReadHugePages(files, plan.page_size, plan.config.numa_node)) {
    shortage.free = counts->free * plan.page_size.count();
    shortage.limit = absl::StrCat(counts->file, " (", cause, ")");
    shortage.cure = HugePageCure(plan.page_size, plan.config.numa_node,
                                 counts->total + ub::PiecesFor(Bytes(shortage.wanted), plan.page_size));
  }
  return DoesNotFit(plan.config, plan.page_size, shortage);
}

}  // namespace

absl::Status FillPools(const std::vector<PoolMemory*>& pools, Registry& registry, const SystemFiles& files,
                       const BootProgress& progress) {
  std::vector<Item> items;
  for (PoolMemory* pool : pools) {
    const uint32_t count = pool->plan().blocks + pool->plan().reserve;
    for (uint32_t i = 0; i < count; ++i) items.push_back({pool, i, nullptr});
  }
  absl::Status made = ForEach(items, [&](Item& item) {
    absl::StatusOr<std::unique_ptr<MemfdBacking>> backing = MemfdBacking::Create(item.pool->Spec());
    if (!backing.ok()) return Explain(*item.pool, files, backing.status());
    item.backing = std::move(*backing);
    return absl::OkStatus();
  });
  if (!made.ok()) return made;
  ub::Mutex progress_mu;
  uint64_t done = 0;
  absl::Status populated = ForEach(items, [&](Item& item) {
    if (absl::Status status = item.backing->Populate(); !status.ok()) return Explain(*item.pool, files, status);
    ub::MutexLock lock(&progress_mu);
    ++done;
    if (progress) progress(done, items.size());
    return absl::OkStatus();
  });
  if (!populated.ok()) return populated;
  for (Item& item : items) {
    PoolMemory& pool = *item.pool;
    if (absl::Status status = item.backing->Register(registry); !status.ok()) return status;
    if (item.index >= pool.plan().blocks) {
      pool.store().AddClean(std::move(item.backing));
      continue;
    }
    pool.store().CountInstalled();
    pool.Install(BlockId(pool.first().value() + item.index), std::move(item.backing));
  }
  return absl::OkStatus();
}

}  // namespace ubd
