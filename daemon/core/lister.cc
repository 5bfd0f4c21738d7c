#include "daemon/core/lister.h"

#include <algorithm>

namespace ubd {

bool Lister::MaySee(const Viewer& viewer, const Lease& lease) {
  if (viewer.admin || lease.owner.uid == viewer.uid) return true;
  return std::any_of(lease.shares.begin(), lease.shares.end(),
                     [&viewer](const Holder& share) { return share.uid == viewer.uid; });
}

std::vector<HolderListing> Lister::Holders(const Viewer& viewer, const Lease& lease) {
  std::vector<HolderListing> listed;
  bool owns = lease.owner.uid == viewer.uid;
  auto add = [&](const Holder& holder) {
    bool whole = viewer.admin || holder.uid == viewer.uid;
    if (!whole && !owns) return;
    HolderListing listing;
    listing.uid = holder.uid;
    listing.access = holder.access;
    listing.advisory = holder.access == Access::kReadOnly && holder.advisory;
    if (whole) {
      listing.session = holder.session;
      listing.pid = holder.pid;
      listing.name = holder.name;
    }
    listed.push_back(std::move(listing));
  };
  add(lease.owner);
  for (const Holder& share : lease.shares) add(share);
  return listed;
}

std::vector<PoolListing> Lister::Pools() const {
  std::vector<PoolListing> listed;
  for (const PoolState& pool : data_.pools) {
    PoolListing listing;
    listing.spec = pool.blocks.spec();
    for (const auto& [generation, id] : data_.recalls.OfPool(pool.blocks.id()).all()) {
      const Lease& lease = *data_.leases.Find(id);
      if (data_.IsIdle(lease)) listing.cached += lease.blocks.size();
    }
    listing.free = pool.blocks.count(BlockState::kFree);
    listing.leased = pool.blocks.count(BlockState::kLeased) - listing.cached;
    listing.draining = pool.blocks.count(BlockState::kDraining);
    listing.recycling = pool.blocks.count(BlockState::kRecycling);
    listing.retired = pool.retired;
    listing.waiters = pool.queue.size();
    listed.push_back(std::move(listing));
  }
  return listed;
}

BlockListing Lister::Listed(const Viewer& viewer, const Block& block, const std::string& pool) const {
  BlockListing listing;
  listing.block = block;
  listing.pool = pool;
  if (!viewer.admin && block.last_uid != viewer.uid) listing.block.last_uid.reset();
  listing.block.lease = LeaseId();
  const Lease* lease = data_.leases.Find(block.lease);
  if (lease == nullptr) return listing;
  // A pin of the whole lease is on each of its blocks.
  listing.in_flight = lease->pins - lease->range_pins + block.in_flight;
  if (MaySee(viewer, *lease)) {
    listing.lease = lease->id;
    listing.block.lease = lease->id;
  }
  return listing;
}

std::vector<BlockListing> Lister::Blocks(const Viewer& viewer) const {
  std::vector<BlockListing> listed;
  for (const PoolState& pool : data_.pools) {
    for (const Block* block : pool.blocks.blocks()) {
      listed.push_back(Listed(viewer, *block, pool.blocks.spec().name));
    }
  }
  // Others need not even know that there is such memory: it is not the node's.
  for (const Lease* lease : data_.leases.All()) {
    if (lease->own && MaySee(viewer, *lease)) listed.push_back(Listed(viewer, *lease->own, kOwnPoolName));
  }
  return listed;
}

std::vector<LeaseListing> Lister::Leases(const Viewer& viewer) const {
  std::vector<LeaseListing> listed;
  MonoTime now = data_.Now();
  for (const Lease* lease : data_.leases.All()) {
    if (!MaySee(viewer, *lease)) continue;
    LeaseListing listing;
    listing.id = lease->id;
    if (viewer.admin || lease->owner.uid == viewer.uid) listing.owner = lease->owner.session;
    listing.pool = data_.PoolNameOf(*lease);
    listing.bytes = lease->bytes;
    listing.blocks = lease->blocks.size();
    listing.generation = lease->generation;
    listing.holders = Holders(viewer, *lease);
    listing.age = now - lease->granted;
    listing.in_flight = lease->pins;
    listing.state = lease->end ? "draining" : data_.IsIdle(*lease) ? "cached" : "held";
    if (lease->end) listing.draining_for = now - lease->ended;
    if (lease->expires) listing.ttl_left = std::max(absl::ZeroDuration(), *lease->expires - now);
    listed.push_back(std::move(listing));
  }
  return listed;
}

std::vector<SessionListing> Lister::Sessions(const Viewer& viewer) const {
  std::vector<SessionListing> listed;
  MonoTime now = data_.Now();
  for (const auto& [id, session] : data_.sessions.all()) {
    Uid uid = session->facts.uid;
    if (!viewer.admin && uid != viewer.uid) continue;
    Usage usage = data_.quotas.OfSession(id);
    SessionListing listing;
    listing.facts = session->facts;
    listing.age = now - session->opened;
    listing.leases = session->owned.size();
    listing.bytes = usage.leased;
    listing.waiters = usage.waiters;
    listing.quota = data_.quotas.TightestLimit(uid);
    listing.uid_bytes = data_.quotas.OfUid(uid).total();
    listed.push_back(std::move(listing));
  }
  return listed;
}

BrokerTotals Lister::Totals() const {
  BrokerTotals totals;
  totals.sessions = data_.sessions.size();
  totals.leases = data_.leases.size();
  totals.waiters = data_.waiters;
  totals.reclaimed_sessions = data_.reclaimed_sessions;
  totals.reclaimed_leases = data_.reclaimed_leases;
  totals.draining = data_.draining;
  totals.stopping = data_.stopping;
  return totals;
}

}  // namespace ubd
