// Runs one ubctl command line in this process, with what it prints.
#ifndef UB_TESTS_UNIT_UBCTL_RUN_UBCTL_H_
#define UB_TESTS_UNIT_UBCTL_RUN_UBCTL_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/ubctl/command_line.h"
#include "client/ubctl/commands.h"

namespace ub::ctl {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

inline Outcome RunUbctl(std::vector<std::string> words, const std::string& runtime_dir = "/nonexistent/ubctl-test") {
  words.insert(words.begin(), {"ubctl", "--runtime-dir", runtime_dir});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  CommandLine line;
  AddAllCommands(line);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int code = line.Main(static_cast<int>(words.size()), argv.data());
  std::string out = testing::internal::GetCapturedStdout();
  return {code, out, testing::internal::GetCapturedStderr()};
}

}  // namespace ub::ctl

#endif  // UB_TESTS_UNIT_UBCTL_RUN_UBCTL_H_
