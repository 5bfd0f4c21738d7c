#include "daemon/core/broker_data.h"

#include <utility>

namespace ubd {

BrokerData::BrokerData(const std::vector<PoolSpec>& specs, const BrokerLimits& given, const BrokerDeps& given_deps)
    : deps(given_deps), limits(given), quotas(limits), recalls(specs.size()) {
  constexpr uint64_t kPoolAlignment = ub::GiB(1).count();
  uint32_t first = 0;
  uint64_t start = UbAddr::kBase;
  pools.reserve(specs.size());
  for (const PoolSpec& spec : specs) {
    PoolId id(static_cast<uint32_t>(pools.size()));
    pools.push_back(PoolState{Pool(id, spec, BlockId(first), UbAddr(start)), {}, 0, 0, false});
    first += spec.blocks;
    start += ub::PiecesFor(spec.block_bytes * spec.blocks, Bytes(kPoolAlignment)) * kPoolAlignment;
  }
  next_own = UbAddr(start);
}

PoolState* BrokerData::PoolOf(BlockId id) {
  uint32_t end = 0;
  for (PoolState& pool : pools) {
    end += pool.blocks.spec().blocks;
    if (id.value() < end) return &pool;
  }
  return nullptr;
}

PoolState* BrokerData::FindPool(const std::string& name) {
  for (PoolState& pool : pools) {
    if (name.empty() || pool.blocks.spec().name == name) return &pool;
  }
  return nullptr;
}

const std::string& BrokerData::PoolNameOf(const Lease& lease) const {
  static const std::string own_name = kOwnPoolName;
  return lease.own ? own_name : pools[lease.pool.value()].blocks.spec().name;
}

const Block& BrokerData::BlockOf(const Lease& lease, BlockId id) const {
  return lease.own ? *lease.own : pools[lease.pool.value()].blocks.block(id);
}

bool BrokerData::IsIdle(const Lease& lease) const {
  return lease.word && lease.pins == 0 && deps.words.IsIdle(lease.owner.session, *lease.word, lease.generation);
}

void BrokerData::Emit(EventKind kind, const Lease& lease, const Holder& holder, std::string text,
                      absl::Duration waited) {
  Emit(Event{.kind = kind,
             .lease = lease.id,
             .session = holder.session,
             .uid = holder.uid,
             .pid = holder.pid,
             .pool = PoolNameOf(lease),
             .bytes = lease.bytes,
             .text = std::move(text),
             .waited = waited});
}

void BrokerData::RaisePressure() {
  if (pressure) return;
  pressure = true;
  deps.words.SetPressure(true);
  recalls.Rewind();
}

void BrokerData::LowerPressure() {
  if (!pressure || waiters > 0 || draining) return;
  pressure = false;
  deps.words.SetPressure(false);
}

}  // namespace ubd
