// Child processes of tests, also under another uid. A child never outlives its test: it is killed and reaped when its
// object goes, and by the kernel when the test itself dies. Everything waits on events with a deadline. One object is
// for one thread at a time.
#ifndef UBD_TESTS_HARNESS_PROCESS_H_
#define UBD_TESTS_HARNESS_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire/unique_fd.h"

namespace ubd::testing {

struct Ids {
  uid_t uid;
  gid_t gid;
};
// Two ordinary users that share a group; nothing on a machine belongs to them. Tests of rights use both.
inline constexpr Ids kNobody = {65534, 65534};
inline constexpr Ids kSomebody = {65533, 65534};

struct Command {
  std::vector<std::string> argv;  // argv[0] is opened by the test itself: it may lie where `ids` could not look
  std::vector<std::string> env;   // "NAME=value", added to the test's own
  std::optional<Ids> ids;         // none: as the test. Supplementary groups are dropped
  bool capture = false;           // stdout comes to ReadLine
  bool feed = false;              // stdin comes from WriteLine; else /dev/null
  std::string stderr_path;        // where stderr is appended; empty: the test's own
};

// How a process ended: exit code, or minus the signal.
using ExitCode = int;

class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(const Command& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Harmless once the process has been reaped.
  void Signal(int signal) const;
  // Waits for the end and reaps. DEADLINE_EXCEEDED leaves it running.
  absl::StatusOr<ExitCode> Wait(absl::Duration limit);
  // SIGKILL, then Wait.
  ExitCode Kill();
  // The next line of its stdout, without the end of line. OUT_OF_RANGE: it closed stdout.
  absl::StatusOr<std::string> ReadLine(absl::Duration limit);
  // False: it does not read any more.
  bool WriteLine(const std::string& line);

 private:
  Process(pid_t pid, ub::UniqueFd pidfd, ub::UniqueFd input, ub::UniqueFd output);

  pid_t pid_;
  ub::UniqueFd pidfd_;
  ub::UniqueFd input_;
  ub::UniqueFd output_;
  std::string unread_;
  std::optional<ExitCode> code_;
};

// Readable once the process has ended; invalid where there is none.
ub::UniqueFd OpenPidfd(pid_t pid);

// True when `fd` becomes readable (or hangs up) within `limit`.
bool WaitReadable(int fd, absl::Duration limit);

// Starts, captures stdout, waits: for commands that end by themselves.
struct Finished {
  ExitCode code;
  std::string out;
};
absl::StatusOr<Finished> RunCommand(Command command, absl::Duration limit);

}  // namespace ubd::testing

#endif  // UBD_TESTS_HARNESS_PROCESS_H_
