#include "daemon/config/message.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/wire/size_text.h"

namespace ubd {
namespace {

using ub::FormatSize;

void WritePool(const HostPoolConfig& pool, ub::v1::PoolConfig* to) {
  to->set_name(pool.spec.name);
  to->set_kind(pool.spec.kind);
  to->set_block_size(FormatSize(pool.spec.block_bytes));
  to->set_blocks(pool.spec.blocks);
  to->set_page_size(pool.page_size.count() == 0 ? "auto" : FormatSize(pool.page_size));
  if (pool.numa_node) to->set_numa_node(*pool.numa_node);
  to->set_reserve_blocks(pool.reserve_blocks);
  to->set_isolation(pool.spec.isolation == Isolation::kNone ? ub::v1::NONE : ub::v1::PER_UID);
  to->set_lock_pages(pool.lock_pages == Demand::kRequired ? ub::v1::REQUIRED
                     : pool.lock_pages == Demand::kOff    ? ub::v1::OFF
                                                          : ub::v1::IF_POSSIBLE);
  to->set_allow_smaller(pool.allow_smaller);
  to->set_min_blocks(pool.min_blocks);
}

void WriteLimits(const BrokerLimits& limits, ub::v1::QuotaConfig* quota, ub::v1::LeaseConfig* lease) {
  if (limits.default_per_uid) quota->set_default_per_uid(FormatSize(*limits.default_per_uid));
  if (limits.default_per_session) quota->set_default_per_session(FormatSize(*limits.default_per_session));
  for (const auto& [uid, limit] : limits.per_uid) {
    ub::v1::UidQuota* entry = quota->add_uid();
    entry->set_user(absl::StrCat(uid.value()));
    entry->set_limit(FormatSize(limit));
  }
  lease->set_max_wait(absl::FormatDuration(limits.max_wait));
  if (limits.max_ttl) lease->set_max_ttl(absl::FormatDuration(*limits.max_ttl));
  lease->set_ticket_ttl(absl::FormatDuration(limits.ticket_ttl));
  lease->set_max_waiters_per_uid(limits.max_waiters_per_uid);
  lease->set_max_leases_per_session(limits.max_leases_per_session);
}

void WriteLog(const Config& config, ub::v1::LogConfig* log) {
  switch (config.log_target) {
    case LogTarget::kAuto:
      log->set_target(ub::v1::LogConfig::AUTO);
      break;
    case LogTarget::kStderr:
      log->set_target(ub::v1::LogConfig::STDERR);
      break;
    case LogTarget::kJournald:
      log->set_target(ub::v1::LogConfig::JOURNALD);
      break;
  }
  switch (config.log_level) {
    case LogLevel::kDebug:
      return log->set_level(ub::v1::LogConfig::DEBUG);
    case LogLevel::kInfo:
      return log->set_level(ub::v1::LogConfig::INFO);
    case LogLevel::kWarn:
      return log->set_level(ub::v1::LogConfig::WARN);
    case LogLevel::kError:
      return log->set_level(ub::v1::LogConfig::ERROR);
  }
}

}  // namespace

ub::v1::Config ToMessage(const Config& config) {
  ub::v1::Config message;
  for (const HostPoolConfig& pool : config.pools) WritePool(pool, message.add_pool());
  message.mutable_socket()->set_mode(absl::StrFormat("%04o", config.socket_mode));
  if (!config.socket_group.empty()) message.mutable_socket()->set_group(config.socket_group);
  WriteLimits(config.limits, message.mutable_quota(), message.mutable_lease());
  ub::v1::SessionConfig* session = message.mutable_session();
  session->set_max_sessions(config.max_sessions);
  session->set_max_per_uid(config.max_sessions_per_uid);
  session->set_max_connections_per_uid(config.max_connections_per_uid);
  session->set_handshake_timeout(absl::FormatDuration(config.handshake_timeout));
  message.mutable_admin();
  if (!config.admin_group.empty()) message.mutable_admin()->set_group(config.admin_group);
  message.mutable_metrics();
  if (!config.metrics_listen.empty()) message.mutable_metrics()->set_listen(config.metrics_listen);
  WriteLog(config, message.mutable_log());
  WriteEngine(config.engine, &message);
  message.mutable_shutdown()->set_grace(absl::FormatDuration(config.shutdown_grace));
  return message;
}

}  // namespace ubd
