// ubd: the program. Exit codes: 0 ended as asked, 1 could not start, 2 usage or configuration.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/service/notify.h"
#include "daemon/signals.h"
#include "daemon/telemetry/log.h"
#include "proto/wire/runtime_dir.h"
#include "proto/wire/version.h"

namespace {

constexpr int kStartFailed = 1;
constexpr int kUsage = 2;

// On stderr whatever the log's target: whoever starts the daemon by hand reads it there.
void Complain(const absl::Status& status) { std::cerr << "ubd: " << std::string(status.message()) << std::endl; }

// For whoever starts ubd without a service manager: one line, then the end of the file. A reader that sees the end
// without the line knows that the start failed.
void AnnounceReady(int fd) {
  constexpr std::string_view kLine = "READY\n";
  if (write(fd, kLine.data(), kLine.size()) < 0) {
    ubd::LogWarn("nobody reads the descriptor of --ready-fd", {{"errno", std::to_string(errno)}});
  }
  close(fd);
}

int Serve(const ubd::DaemonOptions& options, const ubd::Config& config, int ready_fd) {
  ubd::InitLog(config.log_target, config.log_level);
  absl::StatusOr<std::unique_ptr<ubd::Daemon>> daemon = ubd::Daemon::Boot(options, config);
  if (!daemon.ok()) {
    Complain(daemon.status());
    ubd::NotifyStatus("could not start: " + std::string(daemon.status().message()));
    return kStartFailed;
  }
  if (ready_fd >= 0) AnnounceReady(ready_fd);
  (*daemon)->Run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ubd::BlockSignals();
  CLI::App app(
      "ubd: the unified buffer daemon. It registers a pool of memory once and leases blocks of it to processes.",
      "ubd");
  std::string config_path;
  std::string runtime_dir;
  int ready_fd = -1;
  bool check_config = false;
  app.add_option("--config", config_path, "Configuration file; without it the built-in one (8 x 64MiB of host memory)")
      ->type_name("FILE");
  app.add_option("--runtime-dir", runtime_dir, "Directory of the sockets; default: /run/ubd as root, else per user")
      ->type_name("DIR");
  app.add_option("--ready-fd", ready_fd, "Write one line to this open descriptor and close it once leases are served")
      ->type_name("N")
      ->check(CLI::Range(3, 1 << 20));
  app.add_flag("--check-config", check_config, "Check the configuration, print it with every default, and end");
  app.set_version_flag("--version", "ubd " + std::string(ub::ReleaseVersion()) + " (protocol " +
                                        std::to_string(ub::ProtocolVersion()) + ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::cerr << "ubd: " << error.what() << "\n" << app.help();
    return kUsage;
  }
  if (ready_fd >= 0 && fcntl(ready_fd, F_SETFD, FD_CLOEXEC) != 0) {
    std::cerr << "ubd: --ready-fd " << ready_fd << " is not an open descriptor" << std::endl;
    return kUsage;
  }
  absl::StatusOr<ubd::Config> config = ubd::ReadConfig(config_path);
  if (!config.ok()) {
    Complain(config.status());
    return kUsage;
  }
  if (check_config) {
    std::cout << ubd::EffectiveConfig(*config);
    return 0;
  }
  return Serve({config_path, ub::RuntimeDir(runtime_dir)}, *config, ready_fd);
}
