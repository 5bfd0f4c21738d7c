#include "proto/wire/adaptive_spin.h"

#include <gtest/gtest.h>

namespace ub {
namespace {

constexpr uint64_t kLimit = 1000;
constexpr uint32_t kProbe = AdaptiveSpin::kDaemonProbe;

TEST(AdaptiveSpin, EventsWithinTheSpinKeepIt) {
  AdaptiveSpin spin(kLimit, kProbe);
  for (int i = 0; i < 100; ++i) spin.Event(kLimit);
  EXPECT_EQ(spin.budget_ns(), kLimit);
}

TEST(AdaptiveSpin, RareEventsEndItButForAProbe) {
  AdaptiveSpin spin(kLimit, kProbe);
  uint32_t probes = 0;
  uint64_t spent = 0;
  constexpr uint32_t kEvents = 100 * kProbe;
  for (uint32_t i = 0; i < kEvents; ++i) {
    spin.Event(kLimit + 1);
    spent += spin.budget_ns();
    if (spin.budget_ns() == kLimit) ++probes;
  }
  EXPECT_EQ(probes, kEvents / kProbe);
  EXPECT_LT(spent, kEvents * kLimit / kProbe * 2);
}

TEST(AdaptiveSpin, OneLateEventDoesNotEndIt) {
  AdaptiveSpin spin(kLimit, kProbe);
  spin.Event(kLimit * 100);
  EXPECT_EQ(spin.budget_ns(), kLimit / 2);
  spin.Event(1);
  EXPECT_EQ(spin.budget_ns(), kLimit);
}

// Both sleep and wake each other, in step: every gap holds a wake-up, and only a probe of both at once shows that it
// need not.
TEST(AdaptiveSpin, TwoThatPutEachOtherToSleepFindOut) {
  AdaptiveSpin daemon(kLimit, AdaptiveSpin::kDaemonProbe), client(kLimit, AdaptiveSpin::kClientProbe);
  for (int i = 0; i < 100; ++i) daemon.Event(kLimit + 1);
  for (int i = 0; i < 107; ++i) client.Event(kLimit + 1);
  uint32_t rounds = 0;
  while ((daemon.budget_ns() < kLimit || client.budget_ns() < kLimit) && rounds < 1000) {
    daemon.Event(2 * kLimit);
    client.Event(2 * kLimit);
    ++rounds;
  }
  EXPECT_LE(rounds, AdaptiveSpin::kDaemonProbe * AdaptiveSpin::kClientProbe);
}

}  // namespace
}  // namespace ub
