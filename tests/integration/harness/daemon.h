// A real ubd with a private runtime directory, started as a service manager would: ready when it says so on the notify
// socket. When a test has failed, what ubd wrote to stderr is printed at the end. One object is for one thread at a
// time.
#ifndef UBD_TESTS_HARNESS_DAEMON_H_
#define UBD_TESTS_HARNESS_DAEMON_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/integration/harness/notify_socket.h"
#include "tests/integration/harness/proc_facts.h"
#include "tests/integration/harness/process.h"
#include "tests/integration/harness/temp_dir.h"

namespace ubd::testing {

// The ubd under test: $UBD_BIN, else the one built with this test.
std::string UbdBinary();

struct DaemonOptions {
  std::string config;              // text of the config file
  std::vector<std::string> flags;  // further arguments
  std::vector<std::string> env;
  std::optional<Ids> ids;    // none: as the test
  bool open_to_all = false;  // the runtime directory lets other uids through; the config names the sockets' group
  absl::Duration ready_within = absl::Seconds(60);
};

class DaemonProcess {
 public:
  // UNAVAILABLE with what it wrote when it ended before READY.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(const DaemonOptions& options);
  ~DaemonProcess();

  const std::string& runtime_dir() const { return runtime_dir_; }
  pid_t pid() const { return process_->pid(); }
  Process& process() { return *process_; }
  NotifySocket& notify() { return notify_; }
  ProcFacts facts() const { return ReadProcFacts(pid()); }
  // True while it runs.
  bool alive();
  // SIGTERM, then its exit code.
  absl::StatusOr<ExitCode> Stop(absl::Duration limit = absl::Seconds(20));
  std::string log() const { return ReadFile(dir_->path() + "/stderr"); }

 private:
  DaemonProcess(std::unique_ptr<TempDir> dir, std::string runtime_dir, NotifySocket notify);

  std::unique_ptr<TempDir> dir_;
  std::string runtime_dir_;
  NotifySocket notify_;
  std::unique_ptr<Process> process_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_DAEMON_H_
