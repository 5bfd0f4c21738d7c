#include "daemon/memory/preflight.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/memory/budget.h"
#include "daemon/memory/numa.h"
#include "daemon/memory/page_size.h"
#include "proto/wire/error.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

std::string Amount(uint64_t count, const std::string& unit) {
  return unit == "bytes" ? ub::FormatSize(Bytes(count)) : absl::StrCat(count, " ", unit);
}

absl::Status CheckConfig(const HostPoolConfig& pool, const SystemFiles& files) {
  const Bytes block = pool.spec.block_bytes;
  if (block == Bytes(0) || block % ub::MiB(2) != Bytes(0) || block > ub::GiB(1) || pool.spec.blocks == 0) {
    return ub::MakeError(
        absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig,
        absl::StrCat("pool ", pool.spec.name,
                     ": blocks must be at least 1 and block_size a multiple of 2MiB, at most 1GiB; got ",
                     pool.spec.blocks, " of ", ub::FormatSize(block)),
        {{"pool", pool.spec.name}});
  }
  if (pool.numa_node) {
    if (absl::Status status = CheckNode(files, pool.spec.name, *pool.numa_node); !status.ok()) return status;
  }
  return CheckPageSize(files, pool);
}

Shortage ShortageOf(const Draw& draw, uint64_t backings) {
  const Budget& budget = *draw.budget;
  const uint64_t wanted = draw.per_backing * backings;
  return {wanted, budget.left, budget.unit, budget.limit, budget.cure(wanted - budget.left)};
}

// Splits what fits into blocks and reserve in the configured proportion, at least one in reserve if any was asked for.
absl::Status Shrink(PoolPlan& plan, const Fit& fit) {
  const HostPoolConfig& config = plan.config;
  const uint64_t wanted = uint64_t{config.spec.blocks} + config.reserve_blocks;
  const Shortage shortage = ShortageOf(*fit.tightest, wanted);
  uint64_t reserve = fit.backings * config.reserve_blocks / wanted;
  if (config.reserve_blocks > 0) reserve = std::max<uint64_t>(reserve, 1);
  const uint64_t least = std::max<uint32_t>(config.min_blocks, 1);
  if (!config.allow_smaller || fit.backings < least + reserve) return DoesNotFit(config, plan.page_size, shortage);
  plan.reserve = static_cast<uint32_t>(reserve);
  plan.blocks = static_cast<uint32_t>(fit.backings - reserve);
  plan.shrunk = absl::StrCat(plan.blocks, " of ", config.spec.blocks, " blocks: ", shortage.limit, " leaves ",
                             Amount(shortage.free, shortage.unit), " of ", Amount(shortage.wanted, shortage.unit),
                             "; cure: ", shortage.cure);
  return absl::OkStatus();
}

absl::StatusOr<PoolPlan> PlanPool(const HostPoolConfig& config, Budgets& budgets) {
  PoolPlan plan;
  plan.config = config;
  plan.blocks = config.spec.blocks;
  plan.reserve = config.reserve_blocks;
  PageChoice choice = ChoosePageSize(config, budgets);
  plan.page_size = choice.page_size;
  plan.page_reason = choice.reason;
  std::vector<Draw> draws = budgets.DrawsFor(config, plan.page_size);
  Fit fit = FitOf(draws);
  if (fit.backings < uint64_t{plan.blocks} + plan.reserve) {
    if (absl::Status status = Shrink(plan, fit); !status.ok()) return status;
  }
  Claim(draws, uint64_t{plan.blocks} + plan.reserve);
  return plan;
}

// After all that must be: locks what may be locked.
void PlanLock(PoolPlan& plan, Budgets& budgets) {
  const Demand demand = plan.config.lock_pages;
  const Bytes bytes = plan.config.spec.block_bytes * (uint64_t{plan.blocks} + plan.reserve);
  Budget* budget = budgets.Locked();
  if (plan.page_size > SmallPageSize()) {
    plan.locked = "yes";  // huge pages are never swapped
  } else if (demand == Demand::kOff) {
    plan.locked = "no: lock_pages is OFF";
  } else if (demand == Demand::kRequired || bytes.count() <= budget->left) {
    if (demand == Demand::kIfPossible) Claim({{budget, bytes.count()}}, 1);
    plan.lock = true;
    plan.locked = "yes";
  } else {
    plan.locked = absl::StrCat("no: ", budget->limit, " leaves ", ub::FormatSize(Bytes(budget->left)), " of ",
                               ub::FormatSize(bytes), "; cure: ", budget->cure(bytes.count() - budget->left));
  }
}

}  // namespace

absl::Status DoesNotFit(const HostPoolConfig& pool, Bytes page_size, const Shortage& shortage) {
  std::string node = pool.numa_node ? absl::StrCat(*pool.numa_node) : "any";
  std::string text = absl::StrCat(
      "pool ", pool.spec.name, " does not fit: ", pool.spec.blocks, " blocks and ", pool.reserve_blocks,
      " in reserve, ", ub::FormatSize(pool.spec.block_bytes), " each in pages of ", ub::FormatSize(page_size),
      " on node ", node, ", need ", Amount(shortage.wanted, shortage.unit), ", but ", shortage.limit, " leaves ",
      Amount(shortage.free, shortage.unit), " (after what the other pools take). Cure: ", shortage.cure,
      "; or configure fewer blocks, or allow_smaller: true");
  return ub::MakeError(absl::StatusCode::kResourceExhausted, ub::Reason::kPoolDoesNotFit, text,
                       {{"pool", pool.spec.name},
                        {"wanted", absl::StrCat(shortage.wanted)},
                        {"free", absl::StrCat(shortage.free)},
                        {"unit", shortage.unit},
                        {"node", node},
                        {"page_size", absl::StrCat(page_size.count())},
                        {"limit", shortage.limit}});
}

absl::StatusOr<std::vector<PoolPlan>> PlanPools(const std::vector<HostPoolConfig>& pools, const SystemFiles& files,
                                                const ProcessLimits& limits) {
  for (const HostPoolConfig& pool : pools) {
    if (absl::Status status = CheckConfig(pool, files); !status.ok()) return status;
  }
  const bool only_node = MemoryNodes(files).size() == 1;
  Budgets budgets(files, limits);
  std::vector<PoolPlan> plans(pools.size());
  // Pools that name their page size first, so that "auto" takes only what they leave.
  for (bool automatic : {false, true}) {
    for (size_t i = 0; i < pools.size(); ++i) {
      if ((pools[i].page_size == Bytes(0)) != automatic) continue;
      absl::StatusOr<PoolPlan> plan = PlanPool(pools[i], budgets);
      if (!plan.ok()) return plan.status();
      plans[i] = std::move(*plan);
      plans[i].only_node = only_node;
    }
  }
  for (PoolPlan& plan : plans) PlanLock(plan, budgets);
  return plans;
}

}  // namespace ubd
