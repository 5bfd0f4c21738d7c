#include "client/ubctl/bench/fio.h"

#include <gtest/gtest.h>

namespace ub::ctl {
namespace {

TEST(Fio, OutputIsUnderstoodWithWarningsBeforeItAndFieldsUnknown) {
  auto result = ParseFio(R"(fio: this is a warning
{"fio version": "fio-3.33", "jobs": [{"jobname": "ubctl", "error": 0, "job options": {"name": "x"},
 "read": {"io_bytes": 2000000000, "bw_bytes": 1000000000, "iops": 953.674316, "runtime": 2000, "slat_ns": {"min": 1}},
 "usr_cpu": 2.5, "sys_cpu": 7.500000}], "disk_util": [{"name": "vda"}]})");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_DOUBLE_EQ(result->bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(*result->cpu_s_per_gb, 0.1);
}

TEST(Fio, WhatItCouldNotDoIsAnError) {
  EXPECT_FALSE(ParseFio("").ok());
  EXPECT_FALSE(ParseFio("{\"jobs\": []}").ok());
  EXPECT_FALSE(ParseFio("{\"jobs\": [{\"error\": 22, \"read\": {\"bw_bytes\": 5}}]}").ok());
  EXPECT_FALSE(ParseFio("{\"jobs\": [{\"read\": {\"bw_bytes\": 0}}]}").ok());
  EXPECT_FALSE(ParseFio("{\"jobs\": [{").ok());
}

TEST(Program, MissingOneIsNotFoundAndAFailedOneIsSaid) {
  EXPECT_TRUE(absl::IsNotFound(OutputOf({"ubctl-no-such-program"}).status()));
  EXPECT_TRUE(absl::IsAborted(OutputOf({"false"}).status()));
  EXPECT_EQ(*OutputOf({"echo", "a  b"}), "a  b\n");
}

}  // namespace
}  // namespace ub::ctl
