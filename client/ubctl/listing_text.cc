#include "client/ubctl/listing_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ubctl/human.h"
#include "client/ubctl/table.h"
#include "client/ubctl/utf8.h"

namespace ub::ctl {
namespace {

constexpr char kUnset[] = "-";

std::string Count(uint64_t value) { return absl::StrCat(value); }

// Draining is a state with an age: memory that a device still uses stays out of use however long it takes.
std::string StateText(const v1::LeaseInfo& lease) {
  if (!lease.has_draining_ns()) return lease.state();
  return absl::StrCat(lease.state(), " for ", HumanDuration(lease.draining_ns()));
}

}  // namespace

std::string PoolsText(const v1::PoolList& list) {
  Table table({{"POOL"},
               {"KIND"},
               {"BLOCK", Align::kRight},
               {"PAGE", Align::kRight},
               {"NUMA", Align::kRight},
               {"TOTAL", Align::kRight},
               {"FREE", Align::kRight},
               {"LEASED", Align::kRight},
               {"CACHED", Align::kRight},
               {"DRAINING", Align::kRight},
               {"RECYCLING", Align::kRight},
               {"RETIRED", Align::kRight},
               {"RESERVE", Align::kRight},
               {"WAITERS", Align::kRight},
               {"ISOLATION"},
               {"LOCKED"}});
  std::string notes;
  for (const v1::Pool& pool : list.pools()) {
    table.Add({pool.name(), pool.kind(), HumanSize(pool.block_bytes()), HumanSize(pool.page_bytes()),
               pool.has_numa_node() ? absl::StrCat(pool.numa_node()) : "any", Count(pool.blocks_total()),
               Count(pool.blocks_free()), Count(pool.blocks_leased()), Count(pool.blocks_cached()),
               Count(pool.blocks_draining()), Count(pool.blocks_recycling()), Count(pool.blocks_retired()),
               Count(pool.blocks_reserve()), Count(pool.waiters()), pool.isolation(), pool.locked()});
    auto note = [&](std::string_view text) {
      absl::StrAppend(&notes, Printable(pool.name()), ": ", Printable(text), "\n");
    };
    if (!pool.page_reason().empty()) note(absl::StrCat(HumanSize(pool.page_bytes()), " pages: ", pool.page_reason()));
    if (!pool.shrunk().empty()) note(absl::StrCat("smaller than configured: ", pool.shrunk()));
  }
  return notes.empty() ? table.Text() : absl::StrCat(table.Text(), "\n", notes);
}

std::string BlocksText(const v1::BlockList& list) {
  Table table({{"BLOCK", Align::kRight},
               {"POOL"},
               {"STATE"},
               {"GENERATION", Align::kRight},
               {"UB-ADDRESS", Align::kRight},
               {"LEASE", Align::kRight},
               {"IN-FLIGHT", Align::kRight},
               {"RECYCLES", Align::kRight}});
  for (const v1::Block& block : list.blocks()) {
    table.Add({Count(block.id()), block.pool(), block.state(), Count(block.generation()),
               absl::StrFormat("0x%x", block.ub_addr()), block.has_lease() ? Count(block.lease()) : kUnset,
               Count(block.in_flight()), Count(block.recycles())});
  }
  return table.Text();
}

std::string LeasesText(const v1::LeaseList& list) {
  Table table({{"LEASE", Align::kRight},
               {"POOL"},
               {"SIZE", Align::kRight},
               {"BLOCKS", Align::kRight},
               {"GENERATION", Align::kRight},
               {"STATE"},
               {"AGE", Align::kRight},
               {"TTL-LEFT", Align::kRight},
               {"IN-FLIGHT", Align::kRight},
               {"HOLDERS"}});
  for (const v1::LeaseInfo& lease : list.leases()) {
    std::string holders;
    for (const v1::Holder& holder : lease.holders()) {
      absl::StrAppend(&holders, holders.empty() ? "" : "; ", holder.name(), " pid ", holder.pid(), " uid ",
                      holder.uid(), " ", holder.access());
    }
    table.Add({Count(lease.id()), lease.pool(), HumanSize(lease.bytes()), Count(lease.blocks()),
               Count(lease.generation()), StateText(lease), HumanDuration(lease.age_ns()),
               lease.has_ttl_left_ns() ? HumanDuration(lease.ttl_left_ns()) : kUnset, Count(lease.in_flight()),
               holders.empty() ? kUnset : holders});
  }
  return table.Text();
}

std::string SessionsText(const v1::SessionList& list) {
  Table table({{"SESSION", Align::kRight},
               {"PID", Align::kRight},
               {"UID", Align::kRight},
               {"NAME"},
               {"AGE", Align::kRight},
               {"LEASES", Align::kRight},
               {"SIZE", Align::kRight},
               {"QUOTA", Align::kRight},
               {"SIZE-OF-UID", Align::kRight},
               {"WAITERS", Align::kRight},
               {"FDS-IN-FLIGHT", Align::kRight},
               {"IDENTITY"}});
  for (const v1::SessionInfo& session : list.sessions()) {
    table.Add({Count(session.id()), absl::StrCat(session.pid()), Count(session.uid()), session.name(),
               HumanDuration(session.age_ns()), Count(session.leases()), HumanSize(session.bytes()),
               session.has_quota_bytes() ? HumanSize(session.quota_bytes()) : kUnset, HumanSize(session.uid_bytes()),
               Count(session.waiters()), Count(session.fds_in_flight()), session.identity()});
  }
  return table.Text();
}

}  // namespace ub::ctl
