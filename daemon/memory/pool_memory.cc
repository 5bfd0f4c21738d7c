#include "daemon/memory/pool_memory.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/memory/page_size.h"
#include "daemon/memory/sole_holder.h"
#include "daemon/memory/system_files.h"
#include "proto/wire/error.h"

namespace ubd {
namespace {

// khugepaged collapses small pages of a memfd into huge ones only where this says so, and then drops them from the page
// tables meanwhile.
bool SmallPagesStaySmall() {
  std::string mode = SystemFiles().Read("/sys/kernel/mm/transparent_hugepage/shmem_enabled").value_or("[never]");
  return absl::StrContains(mode, "[never]") || absl::StrContains(mode, "[deny]");
}

}  // namespace

PoolMemory::PoolMemory(PoolPlan plan, BlockId first)
    : plan_(std::move(plan)),
      first_(first),
      store_(uint64_t{plan_.blocks} + plan_.reserve, plan_.reserve),
      absence_proves_(plan_.page_size > SmallPageSize() || SmallPagesStaySmall()) {
  slots_.reserve(plan_.blocks);
  for (uint32_t i = 0; i < plan_.blocks; ++i) slots_.push_back(std::make_unique<Slot>());
}

BackingSpec PoolMemory::Spec() const {
  return {.pool = plan_.config.spec.name,
          .bytes = plan_.config.spec.block_bytes,
          .page_size = plan_.page_size,
          .numa_node = plan_.config.numa_node,
          .bind_must_work = !plan_.only_node,
          .lock = plan_.lock,
          .lock_must_work = plan_.config.lock_pages == Demand::kRequired};
}

void PoolMemory::Install(BlockId block, std::unique_ptr<MemfdBacking> backing) {
  Slot& slot = SlotOf(block);
  ub::MutexLock lock(&slot.mu);
  slot.backing = std::move(backing);
  slot.touched = false;
}

std::unique_ptr<MemfdBacking> PoolMemory::TakeOut(BlockId block) {
  Slot& slot = SlotOf(block);
  ub::MutexLock lock(&slot.mu);
  return std::move(slot.backing);
}

absl::StatusOr<ub::UniqueFd> PoolMemory::OpenForHolder(BlockId block, Access access) {
  Slot& slot = SlotOf(block);
  ub::MutexLock lock(&slot.mu);
  if (slot.backing == nullptr) {
    return ub::MakeError(absl::StatusCode::kInternal, ub::Reason::kNone,
                         absl::StrCat("block ", block.value(), " has no memory yet: it is being recycled"));
  }
  return ReopenMemfd(slot.backing->fd(), access);
}

MappedBlock PoolMemory::Locate(BlockId block) const {
  Slot& slot = SlotOf(block);
  ub::MutexLock lock(&slot.mu);
  if (slot.backing == nullptr) return {};
  return {slot.backing->witness(), slot.backing->bytes(), slot.backing->slot()};
}

void PoolMemory::Touched(BlockId block) {
  Slot& slot = SlotOf(block);
  ub::MutexLock lock(&slot.mu);
  slot.touched = true;
}

absl::Status PoolMemory::Probe(const Pagemap& pagemap) {
  Slot& slot = SlotOf(first_);
  ub::MutexLock lock(&slot.mu);
  const MemfdBacking& backing = *slot.backing;
  if (absl::Status status = ProbeSoleHolderTest(backing.fd(), backing.bytes().count()); !status.ok()) return status;
  absl::StatusOr<WitnessScan> scan =
      pagemap.Scan(backing.witness(), backing.bytes().count(), backing.page_size().count());
  if (!scan.ok()) return scan.status();
  if (scan->absent == 0 || !backing.pages_stay()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("/proc/self/pagemap shows ", scan->absent, " of ", scan->pages,
                                                    " pages absent in a block that was just filled"));
}

std::string PoolMemory::Locked() const {
  if (!plan_.lock) return plan_.locked;
  Slot& slot = SlotOf(first_);
  ub::MutexLock lock(&slot.mu);
  if (slot.backing == nullptr || slot.backing->pages_stay()) return plan_.locked;
  return "no: the kernel refused mlock";
}

Examination PoolMemory::Examine(BlockId block, const Pagemap* pagemap) {
  Slot& slot = SlotOf(block);
  ub::MutexLock lock(&slot.mu);
  if (slot.backing == nullptr) return {Holding::kEmpty};
  MemfdBacking& backing = *slot.backing;
  if (!IsSoleHolder(backing.fd())) return {Holding::kHeld};
  Examination result{Holding::kSole};
  if (pagemap == nullptr) return result;
  absl::StatusOr<WitnessScan> scan =
      pagemap->Scan(backing.witness(), backing.bytes().count(), backing.page_size().count());
  if (!scan.ok()) return result;  // not proven
  result.witness_complete = scan->complete();
  // A page that was punched away and faulted in again is there, but devices have the one before it. Nobody can punch
  // now, so what they are given anew is right.
  if (result.witness_complete && std::exchange(slot.touched, false)) {
    result.witness_complete = backing.registration().Renew().ok();
  }
  if (scan->absent > 0 && backing.pages_stay() && absence_proves_) {
    result.tampering = absl::StrCat(scan->absent, " of ", scan->pages, " pages were removed, the first at offset ",
                                    scan->first_absent);
  }
  return result;
}

}  // namespace ubd
