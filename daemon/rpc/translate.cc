#include "daemon/rpc/translate.h"

#include <algorithm>

#include "daemon/rpc/text.h"

namespace ubd {
namespace {

static_assert(static_cast<int>(EventKind::kGranted) == ub::v1::Event::GRANTED);
static_assert(static_cast<int>(EventKind::kRecycled) == ub::v1::Event::RECYCLED);
static_assert(static_cast<int>(EventKind::kStopping) == ub::v1::Event::STOPPING);
static_assert(static_cast<int>(EventKind::kOwnerReleased) == ub::v1::Event::OWNER_RELEASED);
static_assert(static_cast<int>(Access::kReadWrite) == ub::v1::READ_WRITE);
static_assert(static_cast<int>(Access::kReadOnly) == ub::v1::READ_ONLY);

// Never negative: a clock read a moment later must not show time left as a huge number.
uint64_t Nanoseconds(absl::Duration d) {
  return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(d)));
}
uint64_t Milliseconds(absl::Duration d) {
  return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Milliseconds(d)));
}

std::string AccessName(Access access, bool advisory) {
  if (access == Access::kReadWrite) return "rw";
  return advisory ? "ro (advisory)" : "ro";
}

}  // namespace

ub::v1::Lease ToProto(const Grant& grant, const std::string& pool, Bytes page_size, MonoTime now) {
  ub::v1::Lease lease;
  lease.set_id(grant.lease.value());
  lease.set_pool(pool);
  lease.set_generation(grant.generation.value());
  lease.set_block_bytes(grant.block_bytes.count());
  for (const GrantedBlock& block : grant.blocks) lease.add_ub_addr(block.addr.value());
  lease.set_access(static_cast<ub::v1::Access>(grant.access));
  lease.set_read_only_advisory(grant.read_only_advisory);
  if (grant.word) lease.set_word(*grant.word);
  if (grant.expires) lease.set_ttl_left_ms(Milliseconds(*grant.expires - now));
  lease.set_page_bytes(page_size.count());
  return lease;
}

ub::v1::Event ToProto(const WatchedEvent& watched) {
  const Event& event = watched.event;
  ub::v1::Event proto;
  proto.set_seq(watched.seq);
  proto.set_kind(static_cast<ub::v1::Event::Kind>(event.kind));
  proto.set_unix_time_ns(watched.unix_time_ns);
  proto.set_missed(watched.missed);
  if (event.lease) proto.set_lease(event.lease->value());
  if (event.session) proto.set_session(event.session->value());
  if (event.uid) proto.set_uid(event.uid->value());
  if (event.pid) proto.set_pid(*event.pid);
  if (!event.pool.empty()) proto.set_pool(event.pool);
  if (event.bytes != Bytes()) proto.set_bytes(event.bytes.count());
  if (!event.text.empty()) proto.set_text(CleanText(event.text));
  return proto;
}

ub::v1::Pool ToProto(const PoolListing& pool, const PoolFacts* facts) {
  ub::v1::Pool proto;
  proto.set_name(pool.spec.name);
  proto.set_kind(pool.spec.kind);
  proto.set_block_bytes(pool.spec.block_bytes.count());
  proto.set_blocks_total(pool.spec.blocks);
  proto.set_blocks_free(pool.free);
  proto.set_blocks_leased(pool.leased);
  proto.set_blocks_cached(pool.cached);
  proto.set_blocks_draining(pool.draining);
  proto.set_blocks_recycling(pool.recycling);
  proto.set_blocks_retired(pool.retired);
  proto.set_isolation(pool.spec.isolation == Isolation::kPerUid ? "PER_UID" : "NONE");
  proto.set_waiters(pool.waiters);
  if (facts == nullptr) return proto;
  proto.set_page_bytes(facts->page_size.count());
  proto.set_page_reason(facts->page_reason);
  if (facts->numa_node) proto.set_numa_node(*facts->numa_node);
  proto.set_blocks_reserve(facts->reserve);
  proto.set_locked(facts->locked);
  proto.set_shrunk(facts->shrunk);
  return proto;
}

ub::v1::Block ToProto(const BlockListing& block) {
  ub::v1::Block proto;
  proto.set_id(block.block.id.value());
  proto.set_pool(block.pool);
  proto.set_state(BlockStateName(block.block.state));
  proto.set_generation(block.block.generation.value());
  proto.set_ub_addr(block.block.addr.value());
  if (block.lease) proto.set_lease(block.lease->value());
  proto.set_in_flight(block.in_flight);
  proto.set_recycles(block.block.recycles);
  return proto;
}

ub::v1::LeaseInfo ToProto(const LeaseListing& lease) {
  ub::v1::LeaseInfo proto;
  proto.set_id(lease.id.value());
  proto.set_session(lease.owner.value());
  proto.set_pool(lease.pool);
  proto.set_bytes(lease.bytes.count());
  proto.set_blocks(lease.blocks);
  proto.set_generation(lease.generation.value());
  for (const HolderListing& listed : lease.holders) {
    ub::v1::Holder* holder = proto.add_holders();
    holder->set_session(listed.session.value());
    holder->set_pid(listed.pid);
    holder->set_uid(listed.uid.value());
    holder->set_name(CleanText(listed.name));
    holder->set_access(AccessName(listed.access, listed.advisory));
  }
  proto.set_age_ns(Nanoseconds(lease.age));
  proto.set_in_flight(lease.in_flight);
  proto.set_state(lease.state);
  if (lease.draining_for) proto.set_draining_ns(Nanoseconds(*lease.draining_for));
  if (lease.ttl_left) proto.set_ttl_left_ns(Nanoseconds(*lease.ttl_left));
  return proto;
}

ub::v1::SessionInfo ToProto(const SessionListing& session, uint64_t fds_in_flight) {
  ub::v1::SessionInfo proto;
  proto.set_id(session.facts.id.value());
  proto.set_pid(session.facts.pid);
  proto.set_uid(session.facts.uid.value());
  proto.set_name(CleanText(session.facts.name));
  proto.set_age_ns(Nanoseconds(session.age));
  proto.set_leases(session.leases);
  proto.set_bytes(session.bytes.count());
  proto.set_fds_in_flight(fds_in_flight);
  proto.set_waiters(session.waiters);
  if (session.quota) proto.set_quota_bytes(session.quota->count());
  proto.set_uid_bytes(session.uid_bytes.count());
  proto.set_identity(session.facts.identity);
  return proto;
}

}  // namespace ubd
