#include "client/ubctl/bench/verdict.h"

#include <gtest/gtest.h>

namespace ub::ctl {
namespace {

void Set(TransferSide& side, double rate, double slowest, double fastest) {
  side.set_bytes_per_s(rate);
  side.set_slowest_bytes_per_s(slowest);
  side.set_fastest_bytes_per_s(fastest);
}

AbReport Report(double direct, double staged, double traditional) {
  AbReport report;
  Set(*report.mutable_direct(), direct, direct, direct);
  Set(*report.mutable_staged(), staged, staged, staged);
  Set(*report.mutable_traditional(), traditional, traditional, traditional);
  return report;
}

TEST(Verdict, ThresholdsAreTenAndThirtyPercent) {
  EXPECT_STREQ(VerdictFor(-0.5), "stay with what you have");
  EXPECT_STREQ(VerdictFor(0.0999), "stay with what you have");
  EXPECT_STREQ(VerdictFor(0.10), "measure your workload");
  EXPECT_STREQ(VerdictFor(0.2999), "measure your workload");
  EXPECT_STREQ(VerdictFor(0.30), "adopt direct");
}

TEST(Verdict, DirectIsComparedWithTheBetterOfTheOthers) {
  AbReport report = Report(150, 125, 60);
  Judge(report);
  EXPECT_DOUBLE_EQ(report.gain(), 150.0 / 125 - 1);
  EXPECT_DOUBLE_EQ(report.gain_over_traditional(), 1.5);
  EXPECT_EQ(report.verdict(), "measure your workload");
  report = Report(150, 60, 145);
  Judge(report);
  EXPECT_EQ(report.verdict(), "stay with what you have");
  EXPECT_NE(report.advice().find("(traditional)"), std::string::npos) << report.advice();
  EXPECT_NE(report.advice().find("path set staged-only"), std::string::npos) << report.advice();
}

TEST(Verdict, RoundsThatDifferMoreThanTheGainAreSaid) {
  AbReport report = Report(120, 100, 90);
  Judge(report);
  EXPECT_EQ(report.advice().find("rounds of one side differ"), std::string::npos) << report.advice();
  Set(*report.mutable_staged(), 100, 70, 110);
  Judge(report);
  EXPECT_NE(report.advice().find("rounds of one side differ by 40%"), std::string::npos) << report.advice();
}

TEST(Verdict, OneSideMissingIsNoVerdict) {
  AbReport report = Report(120, 0, 90);
  Judge(report);
  EXPECT_FALSE(report.has_gain());
  EXPECT_EQ(report.verdict(), "not measured");
}

}  // namespace
}  // namespace ub::ctl
