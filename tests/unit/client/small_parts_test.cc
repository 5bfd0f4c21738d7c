// The small parts of libub: tickets, fork guard, registry, deadlines.
#include <gtest/gtest.h>

#include <climits>

#include "client/src/fork_guard.h"
#include "client/src/lease_registry.h"
#include "client/src/mono_time.h"
#include "proto/wire/error.h"
#include "tests/unit/client/test_memory.h"

namespace ub {
namespace {

TEST(TicketTest, WrongTextParsed) {
  Ticket ticket({0, 1, 2, 0xfe, 0xff, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  absl::StatusOr<Ticket> back = Ticket::Parse(ticket.text());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->id(), ticket.id());
  std::string good = ticket.text();
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", "g" + good.substr(1),
                                 good.substr(0, 31) + " ", std::string(32, '\0'), "0x" + good.substr(2)}) {
    absl::Status status = Ticket::Parse(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    if (bad.empty()) continue;
    EXPECT_EQ(std::string(status.message()).find(bad), std::string::npos) << "a secret is shown";
  }
}

TEST(ForkGuardTest, ChildTakenForTheParent) {
  ForkGuard guard;
  EXPECT_TRUE(guard.Check().ok());
  int status = InChild([&] {
    if (!guard.forked() || ReasonOf(guard.Check()) != Reason::kForked) return 1;
    ForkGuard own;  // the child is the parent of its own objects
    if (own.forked()) return 2;
    return WEXITSTATUS(InChild([&] { return own.forked() && guard.forked() ? 0 : 3; }));
  });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(guard.forked());
}

TEST(ForkGuardTest, FdStaysOpenInTheChild) {
  UniqueFd fd = MakeMemfd(4096);
  UniqueFd forgotten = MakeMemfd(4096);
  CloseInChild(fd.get());
  CloseInChild(forgotten.get());
  ForgetInChild(forgotten.get());
  int status = InChild([&] {
    if (::fcntl(fd.get(), F_GETFD) != -1) return 1;
    return ::fcntl(forgotten.get(), F_GETFD) == -1 ? 2 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_NE(::fcntl(fd.get(), F_GETFD), -1);
  ForgetInChild(fd.get());
}

TEST(LeaseRegistryTest, EndThatCameBeforeTheGrantLost) {
  LeaseRegistry registry;
  registry.End(LeaseId(7), LeaseEnd::kRevoked);
  LeaseLife seven(LeaseId(7));
  LeaseLife eight(LeaseId(8));
  registry.Add(&seven);
  registry.Add(&eight);
  EXPECT_EQ(seven.end.load(), LeaseEnd::kRevoked);
  EXPECT_EQ(eight.end.load(), LeaseEnd::kNot);
  registry.End(LeaseId(8), LeaseEnd::kExpired);
  registry.End(LeaseId(8), LeaseEnd::kRevoked);
  EXPECT_EQ(eight.end.load(), LeaseEnd::kExpired);
  registry.Remove(&seven);
  EXPECT_EQ(registry.Ids(), std::vector<LeaseId>{LeaseId(8)});
  registry.Remove(&eight);
}

TEST(LeaseRegistryTest, LeaseAddedAfterTheEndOfAllIsAlive) {
  LeaseRegistry registry;
  registry.EndAll(LeaseEnd::kDisconnected);
  LeaseLife late(LeaseId(1));
  registry.Add(&late);
  EXPECT_EQ(late.end.load(), LeaseEnd::kDisconnected);
  registry.Remove(&late);
}

TEST(LeaseRegistryTest, TwoAttachesOfOneLeaseMixedUp) {
  LeaseRegistry registry;
  LeaseLife one(LeaseId(1));
  LeaseLife two(LeaseId(1));
  registry.Add(&one);
  registry.Add(&two);
  registry.Remove(&one);
  registry.End(LeaseId(1), LeaseEnd::kRevoked);
  EXPECT_EQ(one.end.load(), LeaseEnd::kNot);
  EXPECT_EQ(two.end.load(), LeaseEnd::kRevoked);
  registry.Remove(&two);
}

TEST(DeadlineTest, ExtremeDurationsOverflow) {
  EXPECT_TRUE(Deadline::After(-absl::InfiniteDuration()).passed());
  EXPECT_TRUE(Deadline::After(absl::ZeroDuration()).passed());
  Deadline never = Deadline::After(absl::InfiniteDuration());
  EXPECT_FALSE(never.passed());
  EXPECT_GT(never.poll_ms(), 1000);
  EXPECT_GE(Deadline::After(absl::Microseconds(900)).poll_ms(), 0);
  EXPECT_LE(Deadline::After(absl::Microseconds(900)).poll_ms(), 1);
}

}  // namespace
}  // namespace ub
