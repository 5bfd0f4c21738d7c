#include "tests/crash/crash_fixture.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ubd::testing {

int Rounds() {
  const char* given = std::getenv("UBD_CRASH_ROUNDS");
  int rounds = given != nullptr ? std::atoi(given) : 20;
  return rounds > 0 ? rounds : 1;
}

std::string ParamName(const ::testing::TestParamInfo<const char*>& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void CrashTest::StartDaemon(uint64_t reserve, bool open_to_all, const std::string& more) {
  DaemonOptions options;
  options.config = absl::StrCat("pool { name: \"p\" block_size: \"2MiB\" blocks: ", kBlocks,
                                " page_size: \"4KiB\" reserve_blocks: ", reserve, " }\n",
                                open_to_all ? "socket { group: \"nogroup\" }\n" : "", more);
  options.open_to_all = open_to_all;
  auto daemon = DaemonProcess::Start(options);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  auto watch = PoolWatch::Start(daemon_->runtime_dir());
  ASSERT_TRUE(watch.ok()) << watch.status();
  watch_ = *std::move(watch);
}

std::unique_ptr<Process> CrashTest::Holder(const std::string& what, uint64_t bytes, std::optional<Ids> ids) {
  Command command;
  command.argv = {UBD_HOLDER, daemon_->runtime_dir(), what, absl::StrCat(bytes), absl::StrCat(kBlockBytes)};
  command.ids = ids;
  command.capture = true;
  command.feed = true;
  auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  return process.ok() ? *std::move(process) : nullptr;
}

std::string CrashTest::Line(Process& process) {
  auto line = process.ReadLine(kBound);
  return line.ok() ? *line : line.status().ToString();
}

void CrashTest::ExpectLine(Process& process, const std::string& line) { ASSERT_EQ(Line(process), line); }

}  // namespace ubd::testing
