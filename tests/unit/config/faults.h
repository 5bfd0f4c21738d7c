// What the tests of config texts share.
#ifndef UBD_TESTS_CONFIG_FAULTS_H_
#define UBD_TESTS_CONFIG_FAULTS_H_

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/config/config.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"

namespace ubd {

// The lines of the refusal; empty when the text was taken.
inline std::vector<std::string> Faults(const std::string& text) {
  absl::StatusOr<Config> config = ParseConfig(text, "f");
  if (config.ok()) return {};
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ub::ReasonOf(config.status()), ub::Reason::kBadConfig);
  return absl::StrSplit(std::string(config.status().message()), '\n');
}

}  // namespace ubd

#endif  // UBD_TESTS_CONFIG_FAULTS_H_
