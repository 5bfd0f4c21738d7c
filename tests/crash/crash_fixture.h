// What the crash tests share: a daemon with one pool of 32 blocks of 2 MiB, an operator's watch on it, and holders to
// be killed.
#ifndef UBD_TESTS_CRASH_FIXTURE_H_
#define UBD_TESTS_CRASH_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/integration/harness/daemon.h"
#include "tests/integration/harness/pool_watch.h"
#include "tests/integration/harness/process.h"

namespace ubd::testing {

inline constexpr uint64_t kBlockBytes = 2 << 20;
inline constexpr uint64_t kBlocks = 32;
inline constexpr uint64_t kPoolBytes = kBlocks * kBlockBytes;

// How often each crash is repeated: $UBD_CRASH_ROUNDS, else 20.
int Rounds();
// "fork-keep" as a test's name: "fork_keep".
std::string ParamName(const ::testing::TestParamInfo<const char*>& param);

class CrashTest : public ::testing::Test {
 protected:
  // `reserve`: blocks beside the pool. Members of group 65534 may connect when `open_to_all`. `more`: further config
  // text.
  void StartDaemon(uint64_t reserve, bool open_to_all, const std::string& more = "");
  // Starts ubd_holder.
  std::unique_ptr<Process> Holder(const std::string& what, uint64_t bytes, std::optional<Ids> ids = std::nullopt);
  // Its next line must be this.
  void ExpectLine(Process& process, const std::string& line);
  std::string Line(Process& process);
  // Generous: the machine may be busy with other tests and every sanitizer; nothing waits so long when it works.
  static constexpr absl::Duration kBound = absl::Seconds(60);

  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<PoolWatch> watch_;
};

}  // namespace ubd::testing

#endif  // UBD_TESTS_CRASH_FIXTURE_H_
