#include "tests/integration/harness/daemon.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <utility>

#include "proto/wire/error.h"

namespace ubd::testing {
namespace {

// A directory for ubd that only `options.ids` may write to.
absl::StatusOr<std::string> MakeRuntimeDir(const TempDir& dir, const DaemonOptions& options) {
  std::string path = dir / "run";
  if (mkdir(path.c_str(), 0700) != 0) return ub::ErrnoError(errno, "mkdir " + path);
  if (chmod(path.c_str(), options.open_to_all ? 0755 : 0700) != 0) return ub::ErrnoError(errno, "chmod " + path);
  if (options.ids && chown(path.c_str(), options.ids->uid, options.ids->gid) != 0) {
    return ub::ErrnoError(errno, "chown " + path);
  }
  return path;
}

// What was logged last says why; an audit trail of a hundred thousand grants before it would only bury that.
std::string LastOf(const std::string& text) {
  constexpr size_t kMost = 12 << 10;
  if (text.size() <= kMost) return text;
  size_t line = text.find('\n', text.size() - kMost);
  return "... the first " + std::to_string(line) + " bytes are left out\n" + text.substr(line + 1);
}

}  // namespace

std::string UbdBinary() {
  const char* given = std::getenv("UBD_BIN");
  return given != nullptr ? given : UBD_BIN_BUILT;
}

DaemonProcess::DaemonProcess(std::unique_ptr<TempDir> dir, std::string runtime_dir, NotifySocket notify)
    : dir_(std::move(dir)), runtime_dir_(std::move(runtime_dir)), notify_(std::move(notify)) {}

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(const DaemonOptions& options) {
  // Others must get through to the runtime directory and the notify socket, but see nothing of the listing.
  auto dir = std::make_unique<TempDir>(options.open_to_all || options.ids ? 0711 : 0700);
  auto runtime_dir = MakeRuntimeDir(*dir, options);
  if (!runtime_dir.ok()) return runtime_dir.status();
  auto notify = NotifySocket::Bind(*dir / "notify");
  if (!notify.ok()) return notify.status();
  std::string config = dir->Write("ubd.textproto", options.config);

  Command command;
  command.argv = {UbdBinary(), "--config", config, "--runtime-dir", *runtime_dir};
  command.argv.insert(command.argv.end(), options.flags.begin(), options.flags.end());
  command.env = options.env;
  command.env.push_back("NOTIFY_SOCKET=" + notify->path());
  command.ids = options.ids;
  command.stderr_path = *dir / "stderr";

  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess(std::move(dir), *runtime_dir, *std::move(notify)));
  auto process = Process::Start(command);
  if (!process.ok()) return process.status();
  daemon->process_ = *std::move(process);
  ub::UniqueFd pidfd = OpenPidfd(daemon->pid());
  auto ready = daemon->notify_.WaitFor("READY", options.ready_within, pidfd.get());
  if (!ready.ok()) {
    return absl::Status(ready.status().code(), std::string(ready.status().message()) + "\n" + LastOf(daemon->log()));
  }
  return daemon;
}

DaemonProcess::~DaemonProcess() {
  if (process_ != nullptr) process_->Kill();
  if (::testing::Test::HasFailure()) std::cerr << "--- ubd wrote:\n" << LastOf(log()) << "---\n";
}

bool DaemonProcess::alive() { return absl::IsDeadlineExceeded(process_->Wait(absl::ZeroDuration()).status()); }

absl::StatusOr<ExitCode> DaemonProcess::Stop(absl::Duration limit) {
  process_->Signal(SIGTERM);
  return process_->Wait(limit);
}

}  // namespace ubd::testing
