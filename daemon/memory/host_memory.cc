#include "daemon/memory/host_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/memory/boot.h"
#include "daemon/memory/own_memory.h"
#include "daemon/memory/pool_memory.h"
#include "daemon/memory/preflight.h"
#include "daemon/memory/provisioner.h"
#include "daemon/memory/reclaimer.h"
#include "daemon/memory/registry.h"
#include "daemon/memory/sole_holder.h"
#include "daemon/memory/witness.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

using Pools = std::vector<std::unique_ptr<PoolMemory>>;

std::vector<PoolMemory*> Pointers(const Pools& pools) {
  std::vector<PoolMemory*> pointers;
  for (const auto& pool : pools) pointers.push_back(pool.get());
  return pointers;
}

// Null for a block that no pool has.
PoolMemory* FindPool(const Pools& pools, BlockId block) {
  auto after = std::upper_bound(pools.begin(), pools.end(), block,
                                [](BlockId id, const std::unique_ptr<PoolMemory>& pool) { return id < pool->first(); });
  if (after == pools.begin()) return nullptr;
  PoolMemory* pool = std::prev(after)->get();
  return pool->Has(block) ? pool : nullptr;
}

class HostMemory : public Memory {
 public:
  HostMemory(std::unique_ptr<Registry> registry, Pools pools, BlockId first_own, absl::StatusOr<Pagemap> pagemap)
      : registry_(std::move(registry)),
        own_(*registry_, first_own, kMostOwn),
        pools_(std::move(pools)),
        reuse_test_(pagemap.ok() ? "sole-holder" : std::string(pagemap.status().message())),
        reclaimer_(
            Pointers(pools_), [this](BlockId block) { return FindPool(pools_, block); },
            pagemap.ok() ? std::optional<Pagemap>(std::move(*pagemap)) : std::nullopt),
        provisioner_(Pointers(pools_), *registry_, own_) {}
  ~HostMemory() override { Stop(); }

  absl::Status RegisterWith(Registrar* registrar) override { return registry_->AddDevice(registrar); }
  uint32_t Slots() const override { return registry_->slots(); }

  MappedBlock Locate(BlockId block) const override {
    if (const PoolMemory* pool = FindPool(pools_, block)) return pool->Locate(block);
    return own_.Locate(block);
  }

  void Touched(BlockId block) override {
    // A client's own memory is never used again.
    if (PoolMemory* pool = FindPool(pools_, block)) pool->Touched(block);
  }

  absl::StatusOr<BlockId> AddOwn(ub::UniqueFd fd, Bytes offset, Bytes bytes, Access access) override {
    return own_.Add(std::move(fd), offset, bytes, access);
  }
  void DropOwn(BlockId block) override { own_.Drop(block); }

  void Start(ReclaimSink* sink) override {
    provisioner_.Start(sink);
    reclaimer_.Start(sink);
  }

  void Stop() override {
    reclaimer_.Stop();
    provisioner_.Stop();
    registry_->RemoveDevices();
  }

  void Reclaim(BlockId block, ReclaimOrder order) override {
    if (FindPool(pools_, block) != nullptr) reclaimer_.Order(block, std::move(order));
  }

  absl::StatusOr<ub::UniqueFd> OpenForHolder(BlockId block, Access access) override {
    if (PoolMemory* pool = FindPool(pools_, block)) return pool->OpenForHolder(block, access);
    return ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kNone,
                         absl::StrCat("no pool has block ", block.value()));
  }

  std::vector<PoolFacts> Facts() const override {
    std::vector<PoolFacts> all;
    for (const auto& pool : pools_) {
      const PoolPlan& plan = pool->plan();
      PoolFacts facts;
      facts.spec = plan.config.spec;
      facts.spec.blocks = plan.blocks;
      facts.page_size = plan.page_size;
      facts.page_reason = plan.page_reason;
      facts.numa_node = plan.config.numa_node;
      facts.locked = pool->Locked();
      facts.shrunk = plan.shrunk;
      facts.reserve = pool->store().Clean();
      all.push_back(std::move(facts));
    }
    return all;
  }

  std::string ReuseTest() const override { return reuse_test_; }

 private:
  const std::unique_ptr<Registry> registry_;  // outlives all that is registered
  OwnMemory own_;
  const Pools pools_;
  const std::string reuse_test_;
  Reclaimer reclaimer_;
  Provisioner provisioner_;
};

// The opened pagemap if every test that reuse rests on tells the truth here; else why not.
absl::StatusOr<Pagemap> ProbeReuseTests(const Pools& pools, const HostMemoryDeps& deps) {
  if (!deps.distrust.empty()) return absl::FailedPreconditionError(deps.distrust);
  absl::StatusOr<Pagemap> pagemap = Pagemap::Open();
  if (!pagemap.ok()) return pagemap;
  if (absl::Status status = ProbeWitness(*pagemap); !status.ok()) return status;
  // On a block of each pool: small and huge pages are different file systems to the kernel.
  for (const auto& pool : pools) {
    if (absl::Status status = pool->Probe(*pagemap); !status.ok()) return status;
  }
  return pagemap;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> CreateHostMemory(const std::vector<HostPoolConfig>& pools,
                                                         const BootProgress& progress, const HostMemoryDeps& deps) {
  IgnoreLeaseSignals();
  absl::StatusOr<std::vector<PoolPlan>> plans = PlanPools(pools, deps.files, deps.limits);
  if (!plans.ok()) return plans.status();
  std::unique_ptr<Registry> registry;  // outlives the backings
  Pools made;
  uint64_t first = 0;
  uint64_t slots = Memory::kMostOwn;
  for (PoolPlan& plan : *plans) {
    const uint32_t blocks = plan.blocks;
    slots += uint64_t{blocks} + plan.reserve;
    made.push_back(std::make_unique<PoolMemory>(std::move(plan), BlockId(static_cast<uint32_t>(first))));
    first += blocks;
  }
  if (first > UINT32_MAX || slots > UINT32_MAX) {
    return ub::MakeError(
        absl::StatusCode::kInvalidArgument, ub::Reason::kBadConfig,
        absl::StrCat("the pools have ", first, " blocks in all; the most is ", UINT32_MAX, "; use larger blocks"));
  }
  registry = std::make_unique<Registry>(static_cast<uint32_t>(slots));
  absl::Status filled = FillPools(Pointers(made), *registry, deps.files, progress);
  if (!filled.ok()) return filled;
  absl::StatusOr<Pagemap> pagemap = ProbeReuseTests(made, deps);
  return std::make_unique<HostMemory>(std::move(registry), std::move(made), BlockId(static_cast<uint32_t>(first)),
                                      std::move(pagemap));
}

}  // namespace ubd
