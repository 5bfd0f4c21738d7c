// The daemon put together: boot order, run, reload, orderly end. Wiring only; every rule lives in the part that it
// concerns.
//
//   signals -> config -> log -> runtime directory (a second daemon fails here, before any memory) -> memory -> Broker,
//   events, metrics, RPC server
//   -> sockets -> event loop -> READY
//
// Use from one thread: Boot, then Run once.
#ifndef UBD_DAEMON_H_
#define UBD_DAEMON_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/config/config.h"

namespace ubd {

struct DaemonOptions {
  std::string config_path;  // empty: the built-in configuration
  std::string runtime_dir;
};

// The config file, or the built-in configuration.
absl::StatusOr<Config> ReadConfig(const std::string& path);

class Daemon {
 public:
  virtual ~Daemon() = default;
  // Everything up to READY. On failure nothing is left behind, and the error says what to do. BlockSignals must have
  // been called.
  static absl::StatusOr<std::unique_ptr<Daemon>> Boot(const DaemonOptions& options, const Config& config);
  // Serves until TERM or INT, then ends in order: no new leases, streams told why, sessions closed.
  virtual void Run() = 0;
};

}  // namespace ubd

#endif  // UBD_DAEMON_H_
