// The config file: protobuf text format (schema: proto/ub/v1/config.proto), checked completely before anything is used.
// An error names file, line, column, the token and the nearest valid name or the right form, one line per fault:
//   /etc/ubd/ubd.textproto:7:3: unknown key "sise" in pool; did you mean "block_size"?
#ifndef UBD_CONFIG_CONFIG_H_
#define UBD_CONFIG_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/requests.h"
#include "daemon/engine/engine.h"
#include "daemon/memory/memory.h"
#include "daemon/telemetry/log.h"

namespace ubd {

// The whole configuration with every default applied.
struct Config {
  std::string path;
  std::vector<HostPoolConfig> pools;
  BrokerLimits limits;
  uint32_t socket_mode = 0660;
  std::string socket_group;  // empty: the daemon's own
  uint32_t max_sessions = 4096;
  uint32_t max_sessions_per_uid = 2048;
  uint32_t max_connections_per_uid = 4096;
  absl::Duration handshake_timeout = absl::Seconds(5);
  std::string admin_group;     // empty: none
  std::string metrics_listen;  // empty: off
  LogTarget log_target = LogTarget::kAuto;
  LogLevel log_level = LogLevel::kInfo;
  absl::Duration shutdown_grace = absl::Seconds(5);
  EngineOptions engine;  // of section `path`, too
};

// INVALID_ARGUMENT/BAD_CONFIG with all faults, one a line, or NOT_FOUND / PERMISSION_DENIED for the file itself.
absl::StatusOr<Config> LoadConfig(const std::string& path);
absl::StatusOr<Config> ParseConfig(const std::string& text, const std::string& name);

// Text that ParseConfig reads back to the same Config: every key with its value in effect.
std::string EffectiveConfig(const Config& config);

// What a reload may change, and which keys of `wanted` need a restart (by name). `limits`, log level, handshake
// timeout and section `path` reload.
struct ReloadPlan {
  Config merged;
  std::vector<std::string> changed;
  std::vector<std::string> needs_restart;
};
ReloadPlan PlanReload(const Config& running, const Config& wanted);

}  // namespace ubd

#endif  // UBD_CONFIG_CONFIG_H_
