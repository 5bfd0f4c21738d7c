#include <map>

#include "absl/strings/str_cat.h"
#include "daemon/config/read.h"
#include "daemon/config/users.h"

namespace ubd {
namespace {

void ReadUidQuota(const ub::v1::UidQuota& from, const Section& at, bool mistyped, BrokerLimits* limits) {
  if (!from.has_user() || !from.has_limit()) {
    if (!mistyped)
      at.Fault("uid", "a uid quota needs both a user and a limit: uid { user: \"alice\" limit: \"4GiB\" }");
    return;
  }
  auto uid = ResolveUser(from.user());
  if (!uid.ok()) return at.Fault("user", std::string(uid.status().message()));
  auto limit = at.Size("limit");
  if (!limit) return;
  if (!limits->per_uid.emplace(*uid, *limit).second) {
    at.Fault("user", absl::StrCat("user \"", from.user(), "\" (", uid->value(), ") has a quota already; keep one"));
  }
}

}  // namespace

void ReadQuota(const ub::v1::Config& from, const Section& root, bool mistyped, Config* config) {
  if (!from.has_quota()) return;
  Section quota = root.Inner("quota", from.quota());
  config->limits.default_per_uid = quota.Size("default_per_uid");
  config->limits.default_per_session = quota.Size("default_per_session");
  for (int i = 0; i < from.quota().uid_size(); ++i) {
    ReadUidQuota(from.quota().uid(i), quota.Inner("uid", from.quota().uid(i), i), mistyped, &config->limits);
  }
}

void ReadLease(const ub::v1::Config& from, const Section& root, Config* config) {
  if (!from.has_lease()) return;
  Section lease = root.Inner("lease", from.lease());
  BrokerLimits* limits = &config->limits;
  limits->max_wait = lease.Duration("max_wait").value_or(limits->max_wait);
  limits->max_ttl = lease.PositiveDuration("max_ttl");
  limits->ticket_ttl = lease.PositiveDuration("ticket_ttl").value_or(limits->ticket_ttl);
  limits->max_waiters_per_uid = lease.Count("max_waiters_per_uid", limits->max_waiters_per_uid);
  limits->max_leases_per_session = lease.Count("max_leases_per_session", limits->max_leases_per_session);
}

}  // namespace ubd
