#include "daemon/core/broker_check.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace ubd {
namespace {

absl::Status Wrong(const std::string& what) { return absl::InternalError(what); }

using Owners = absl::flat_hash_map<BlockId, LeaseId>;

// A lease has its blocks for itself, in the right state, and its holders know of it.
absl::Status CheckLease(const BrokerData& data, const Lease& lease, Owners& owners) {
  std::string name = absl::StrCat("lease ", lease.id.value());
  BlockState state = lease.end ? BlockState::kDraining : BlockState::kLeased;
  for (BlockId id : lease.blocks) {
    const Block& block = data.BlockOf(lease, id);
    if (!owners.emplace(id, lease.id).second) return Wrong(absl::StrCat(name, " shares a block with another"));
    if (block.in_flight > lease.range_pins) return Wrong(absl::StrCat(name, " has transfers that it does not count"));
    if (block.state != state || block.lease != lease.id || block.generation != lease.generation) {
      return Wrong(absl::StrCat(name, " has a block in the wrong state"));
    }
  }
  if (lease.range_pins > lease.pins) return Wrong(absl::StrCat(name, " counts its pins wrong"));
  if (lease.end && lease.pins == 0) return Wrong(absl::StrCat(name, " has ended and is not pinned"));
  if (lease.end) return absl::OkStatus();
  const SessionRecord* owner = data.sessions.Find(lease.owner.session);
  if (owner == nullptr || !owner->owned.contains(lease.id)) return Wrong(absl::StrCat(name, " has no owner"));
  auto request = owner->requests.find(lease.request);
  bool asked = request != owner->requests.end() && request->second.lease == lease.id;
  if (asked == lease.own.has_value()) return Wrong(absl::StrCat(name, " has no request, or should have none"));
  for (const Holder& share : lease.shares) {
    const SessionRecord* session = data.sessions.Find(share.session);
    if (session == nullptr || !session->attached.contains(lease.id)) {
      return Wrong(absl::StrCat(name, " has a share that nobody holds"));
    }
  }
  return absl::OkStatus();
}

// What sessions list is there; nothing else is.
absl::Status CheckSessions(const BrokerData& data) {
  uint64_t owned = 0;
  uint64_t waits = 0;
  for (const auto& [id, session] : data.sessions.all()) {
    owned += session->owned.size();
    for (const auto& [request, record] : session->requests) waits += record.waiter != 0 ? 1 : 0;
    for (LeaseId lease : session->owned) {
      const Lease* live = data.leases.FindLive(lease);
      if (live == nullptr || live->owner.session != id) return Wrong("a session owns a lease that is not there");
    }
    for (LeaseId lease : session->attached) {
      if (data.leases.FindHeld(id, lease) == nullptr) return Wrong("a session is attached to nothing");
    }
  }
  uint64_t live = 0;
  for (const Lease* lease : data.leases.All()) live += lease->end ? 0 : 1;
  if (live != owned) return Wrong("a live lease has no session");
  if (waits != data.waiters) return Wrong("waiters are counted wrong");
  return absl::OkStatus();
}

absl::Status CheckQuotas(const BrokerData& data) {
  absl::flat_hash_map<Uid, Usage> uids;
  absl::flat_hash_map<SessionId, Usage> sessions;
  for (const Lease* lease : data.leases.All()) {
    uids[lease->owner.uid].leased += lease->bytes;
    sessions[lease->owner.session].leased += lease->bytes;
  }
  for (const PoolState& pool : data.pools) {
    for (const auto& [id, waiter] : pool.queue.all()) {
      for (Usage* usage : {&uids[waiter.uid], &sessions[waiter.request.session]}) {
        usage->waited += waiter.bytes;
        ++usage->waiters;
      }
    }
  }
  for (const PoolState& pool : data.pools) {
    for (const Block* block : pool.blocks.blocks()) {
      if (std::optional<Uid> uid = pool.blocks.TestedFor(block->id))
        uids[*uid].tested += pool.blocks.spec().block_bytes;
    }
  }
  // Retired bytes come from outside; the memory layer's fake counts them.
  for (const auto& [uid, usage] : data.quotas.uids()) uids[uid].retired = usage.retired;
  if (uids != data.quotas.uids()) return Wrong("usage of uids differs from the sum of what there is");
  if (sessions != data.quotas.sessions()) return Wrong("usage of sessions differs from the sum of what there is");
  return absl::OkStatus();
}

// A client's own memory is known by its block, and nobody else has its addresses.
absl::Status CheckOwn(const BrokerData& data) {
  size_t own = 0;
  absl::flat_hash_set<uint64_t> addresses;
  for (const Lease* lease : data.leases.All()) {
    if (lease->own.has_value() != (lease->pool == kOwnPool)) return Wrong("a lease does not know whose memory it is");
    if (!lease->own) continue;
    ++own;
    const Block& block = *lease->own;
    auto known = data.own.find(block.id);
    if (known == data.own.end() || known->second != lease->id) return Wrong("own memory is not known by its block");
    uint64_t addr = block.addr.value();
    bool fresh = addr % ub::GiB(1).count() == 0 && block.addr < data.next_own && addresses.insert(addr).second;
    for (const PoolState& pool : data.pools) {
      const Block* last = pool.blocks.blocks().back();
      fresh = fresh && block.addr >= last->addr + pool.blocks.spec().block_bytes;
    }
    if (!fresh) return Wrong("own memory lies at an address that something else has");
    if (lease->word || lease->expires || !lease->shares.empty()) return Wrong("own memory is cached or shared");
  }
  return own == data.own.size() ? absl::OkStatus() : Wrong("own memory has no lease");
}

absl::Status CheckPool(const BrokerData& data, const PoolState& pool, const Owners& owners) {
  if (absl::Status bad = pool.blocks.Check(); !bad.ok()) return bad;
  uint64_t demand = 0;
  for (const auto& [id, waiter] : pool.queue.all()) demand += waiter.blocks;
  if (demand != pool.queue.demand()) return Wrong("demand of a queue is counted wrong");
  uint64_t leases = 0;
  uint64_t words = 0;
  for (const Lease* lease : data.leases.All()) {
    if (lease->pool != pool.blocks.id()) continue;
    ++leases;
    words += lease->word ? 1 : 0;
    if (lease->word && (lease->end || lease->expires || !lease->shares.empty())) {
      return Wrong("a lease has a word that must not have one");
    }
  }
  if (leases != pool.leases) return Wrong("leases of a pool are counted wrong");
  if (words != data.recalls.OfPool(pool.blocks.id()).size())
    return Wrong("the recall list is not the leases with words");
  for (const Block* block : pool.blocks.blocks()) {
    if (block->state == BlockState::kLeased && !owners.contains(block->id)) return Wrong("a leased block has no lease");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckData(const BrokerData& data) {
  Owners owners;
  for (const Lease* lease : data.leases.All()) {
    if (absl::Status bad = CheckLease(data, *lease, owners); !bad.ok()) return bad;
  }
  if (absl::Status bad = CheckSessions(data); !bad.ok()) return bad;
  if (absl::Status bad = CheckQuotas(data); !bad.ok()) return bad;
  if (absl::Status bad = CheckOwn(data); !bad.ok()) return bad;
  for (const PoolState& pool : data.pools) {
    if (absl::Status bad = CheckPool(data, pool, owners); !bad.ok()) return bad;
  }
  if (data.pressure != (data.waiters > 0 || data.draining))
    return Wrong("pressure does not tell whether somebody waits");
  return absl::OkStatus();
}

}  // namespace ubd
